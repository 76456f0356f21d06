"""The grid of a recorded launch for other blocks, which the program would have computed from them.

A recording holds the numbers of programs and not the formula. Nearly every formula is a product of `cdiv(size, BLOCK)`
and sizes, of numbers that the launch was given: those that come to the recorded grid are the guesses. A guess is only
worth what is made of it: the launch is interpreted with it, and must give what the recorded launch gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from portability.record.arguments import tensors
from portability.record.model import Call

MOST = 6  # grids that are guessed of one launch


def grids(call: Call, old: Mapping[str, int], new: Mapping[str, int]) -> list[tuple[int, ...]]:
    """Return what the launch's smallest grid may become where its tiles `old` become `new`, the likeliest first.

    Blocks that no tile is of (warps, stages) change no grid.
    """
    if not call.grids:
        return []
    size = min(call.grids, key=lambda g: g.programs).size
    changed = {n: (old[n], new[n]) for n in old if n in call.constants and new[n] != old[n]}
    if not changed:
        return [size]
    tiles = {n: (old[n], new[n]) for n in old if n in call.constants}
    axes = [list(dict.fromkeys(_axis(n, tiles, changed, sizes_of(call)))) for n in size]
    made = sorted(itertools.product(*axes), key=lambda g: sum(a == b for a, b in zip(g, size, strict=True)))
    return made[:MOST]


def _axis(
    programs: int, tiles: Mapping[str, tuple[int, int]], changed: Mapping[str, Any], sizes: Sequence[int]
) -> Iterator[int]:
    """Yield what one axis of the grid may become: one tiled size, two of them, a tiled one and a whole; else itself."""
    ways = {n: [(-(-s // a), -(-s // b)) for s in sizes] for n, (a, b) in tiles.items()}
    for name in changed:
        yield from (b for a, b in ways[name] if a == programs)
    for one, other in itertools.combinations(tiles, 2):
        if one in changed or other in changed:
            for (a, b), (c, d) in itertools.product(ways[one], ways[other]):
                if a * c == programs and a > 1 and c > 1:
                    yield b * d
    for name in changed:
        yield from (
            b * s for (a, b), s in itertools.product(ways[name], sizes) if a * s == programs and a > 1 and s > 1
        )
    yield programs


def sizes_of(call: Call) -> list[int]:
    """Return the whole numbers that a launch was given, and the sizes of its tensors."""
    found: dict[int, None] = {}
    for value in call.arguments.values():
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            found[value] = None
        for tensor in tensors(value):
            found |= dict.fromkeys(n for n in (*tensor["shape"], _product(tensor["shape"])) if n > 0)
    return list(found)


def _product(shape: Iterable[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total
