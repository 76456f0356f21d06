"""The sizes of tiles that a recorded launch names itself: its blocks, as far as its arguments tell them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from portability.record.model import Call

BLOCK = re.compile(r"BLOCK|TILE|CHUNK", re.IGNORECASE)  # in the name of a constant that is a size of a tile
SMALLEST = 16  # elements of a tile: products need as many
WARPS, STAGES = "num_warps", "num_stages"
DEFAULT_WARPS = 4  # Triton's own; the default of stages is each target's


def tiles(call: Call) -> dict[str, int]:
    """Return the sizes of tiles among a launch's constants, its warps and its stages."""
    sizes = {
        n: v for n, v in call.arguments.items()
        if n in call.constants and BLOCK.search(n) and isinstance(v, int) and v >= SMALLEST and v & (v - 1) == 0
    }  # fmt: skip
    named = {n: int(call.options[n]) for n in (WARPS, STAGES) if n in call.options}
    return {**sizes, WARPS: DEFAULT_WARPS, **named}


def with_tiles(call: Call, blocks: Mapping[str, int]) -> Call:
    """Return the launch with other tiles, warps and stages, and the grid that it had."""
    arguments = {n: blocks.get(n, v) if n in call.constants else v for n, v in call.arguments.items()}
    options = {**call.options, **{n: blocks[n] for n in (WARPS, STAGES) if n in blocks}}
    return replace(call, arguments=arguments, options=options)
