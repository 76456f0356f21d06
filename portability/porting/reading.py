"""What one cell's launches became on one target: a runner's side of a port.

The cell is run as any other; what is added is read from what the compiler made of each launch: matrix layouts out of
TritonGPU IR, instructions that flush denormals out of the assembly, and the names of the language that the kernel uses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from portability import backend as backends
from portability import kernel as kernels
from portability.backend import Backend, Launch
from portability.binary import matrix_instruction
from portability.checks import assembly
from portability.checks.cell import Watched
from portability.model import Cell, Target, from_json, to_json
from portability.porting.model import Reading
from portability.run import Options, run_cell
from portability.uses import uses

LAYOUT = re.compile(r"^#\w+ = #(?:ttg|ttng)\.(\w+)<(.*)>$", re.MULTILINE)
PRODUCTS = ("nvidia_mma", "amd_mfma", "amd_wmma", "tensor_memory_encoding")  # layouts of products, and of nothing else
SHARED = re.compile(r"^(\w+_shared|shared_\w+)$")
# PTX says of each instruction that it flushes denormals. On AMD one mode holds for a kernel: LLVM, "User Guide for
# AMDGPU Backend", FLOAT_DENORM_MODE, of which 3 flushes none.
FLUSHING = re.compile(r"\b([a-z][\w.]*\.ftz[\w.]*)")
FLUSH_MODE = re.compile(r"\.amdhsa_float_denorm_mode_32 ([0-2])\b")


def read(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the observation of a cell and, where a compiler was at work, a `Reading` for each distinct binary."""
    cell, target = from_json(Cell, request["cell"]), from_json(Target, request["target"])
    case = kernels.discover(tuple(request.get("kernels", ()))).cases[cell.kernel]
    adapter = Watched(backends.discover(tuple(request.get("backends", ())))[target.backend], lambda _: None)
    options = Options(**request["options"])
    observation = run_cell(
        cell, case, cast(Backend, adapter), target, kernels.Blocks(request["blocks"]), request["blocks_from"], options
    )
    spills = {r.hash: r.spills or 0 for r in observation.resources}
    launches = [launch for session in adapter.sessions for launch in session.launches]
    found = {launch.hash: reading_of(launch, Path(options.root)) for launch in launches if launch.compiled is not None}
    readings = [
        replace(r, made=replace(r.made, spills=spills.get(key[:16], 0))) for key, r in found.items() if r is not None
    ]
    names = sorted({n for launch in launches for n in names_of(launch.function)})
    return {"observation": to_json(observation), "readings": [to_json(r) for r in readings], "names": names}


def reading_of(launch: Launch, root: Path) -> Reading | None:
    """Return what was made of a compiled launch; None where there is no Triton IR of it."""
    made = assembly.read(launch, {}, lambda file: kernels.relative(file, root))
    if made is None:
        return None
    asm, metadata = launch.compiled.asm, launch.compiled.metadata
    return Reading(
        made,
        warps=launch.num_warps,
        aligned=sum("tt.divisibility" in str(a) for a in launch.attributes.values()),
        stages=int(getattr(metadata, "num_stages", 0) or 0),
        shared=int(getattr(metadata, "shared", 0) or 0),
        layouts=layouts(str(asm.get("ttgir", ""))),
        instruction=matrix_instruction(asm),
        flushes=flushes(str(asm.get("ptx", "")), str(asm.get("amdgcn", ""))),
    )


def layouts(ttgir: str) -> tuple[str, ...]:
    """Return the layouts of products and of shared memory in TritonGPU IR, in words, each once."""
    return tuple(
        dict.fromkeys(_words(m[1], m[2]) for m in LAYOUT.finditer(ttgir) if m[1] in PRODUCTS or SHARED.match(m[1]))
    )


def _words(kind: str, parameters: str) -> str:
    if kind not in PRODUCTS:
        return kind
    shape, warps = (re.search(rf"{name} = \[([\d, ]+)\]", parameters) for name in ("instrShape", "warpsPerCTA"))
    block = re.search(r"blockM = (\d+), blockN = (\d+)", parameters)
    version = re.search(r"version(?:Major)? = (\d+)", parameters)
    said = [f"{kind} version {version[1]}" if version else kind]
    said += [shape[1].replace(", ", "x")] if shape else []
    said += [f"{block[1]}x{block[2]}"] if block else []
    said += [f"over {warps[1].replace(', ', 'x')} warps"] if warps else []
    return " ".join(said)


def flushes(ptx: str, amdgcn: str) -> tuple[str, ...]:
    """Return what in the assembly flushes denormals of float32 to zero: PTX's instructions, or AMD's mode."""
    mode = FLUSH_MODE.search(amdgcn)
    return tuple(sorted({m[1] for m in FLUSHING.finditer(ptx)})) + (
        (f"float_denorm_mode_32 {mode[1]}",) if mode else ()
    )


def names_of(function: Any) -> tuple[str, ...]:
    """Return the names of the language that a jitted function and its helpers use; none where it has no source."""
    fn = getattr(function, "fn", None)
    return _names(fn.__code__.co_filename, fn.__name__, _helpers(fn)) if fn is not None else ()


def _helpers(fn: Any) -> tuple[str, ...]:
    """Return the modules that the functions which `fn` calls come from, and those that these call."""
    found: dict[str, None] = {}
    waiting, seen = [fn], {id(fn)}
    while waiting:
        now = waiting.pop()
        for name in now.__code__.co_names:
            helper = getattr(now.__globals__.get(name), "fn", None)
            if hasattr(helper, "__code__") and id(helper) not in seen:
                seen.add(id(helper))
                waiting.append(helper)
                found[helper.__module__] = None
    return tuple(m for m in found if not m.startswith("triton."))


@cache
def _names(file: str, kernel: str, modules: tuple[str, ...]) -> tuple[str, ...]:
    texts = {m: _text(getattr(sys.modules.get(m), "__file__", None)) for m in modules}
    try:
        return uses(_text(file), kernel, {m: t for m, t in texts.items() if t}).names
    except (LookupError, SyntaxError):  # a kernel that was made in another way than by writing it into the file
        return ()


def _text(file: str | None) -> str:
    return Path(file).read_text(encoding="utf-8") if file and Path(file).is_file() else ""
