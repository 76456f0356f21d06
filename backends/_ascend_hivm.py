"""AscendNPU IR: what its compiler plans for a kernel's Linalg, with no NPU and no CANN.

`bishengir-compile` of the PyPI package `ascendnpu-ir` takes Linalg through the vendor's own dialects to HIVM, in which
every buffer has its place in the unified buffer (UB), L1 or L0C. Only the last tool, `hivmc`, is CANN's; where it is
missing, that very error is the sign that everything before it passed.
"""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DISTRIBUTION = "ascendnpu-ir"
RESULT = "module.hivm.opt.mlir"  # written by --save-temps before `hivmc` is called
MEMORIES = {"ub": "UB", "cbuf": "L1", "cc": "L0C"}  # HIVM's address spaces, under the names of Limits.buffers
# A field of triton-ascend's options -> the flag, as triton-ascend 3.2.0 passes them for the 910B family.
FLAGS = {
    "multibuffer": "enable-auto-multi-buffer",
    "enable_auto_bind_sub_block": "enable-auto-bind-sub-block",
    "enable_hivm_auto_cv_balance": "enable-hivm-auto-cv-balance",
    "sync_solver": "enable-hivm-graph-sync-solver",
    "unit_flag": "enable-hivm-unit-flag-sync",
    "inject_barrier_all": "enable-hivm-inject-barrier-all-sync",
    "inject_block_all": "enable-hivm-inject-block-all-sync",
    "limit_auto_multi_buffer_only_for_local_buffer": "limit-auto-multi-buffer-only-for-local-buffer",
    "limit_auto_multi_buffer_of_local_buffer": "limit-auto-multi-buffer-of-local-buffer",
    "set_workspace_multibuffer": "set-workspace-multibuffer",
    "tile_mix_vector_loop": "tile-mix-vector-loop",
    "tile_mix_cube_loop": "tile-mix-cube-loop",
    "disable_auto_inject_block_sync": "disable-auto-inject-block-sync",
}
FIXED = ("enable-hfusion-compile=true", "enable-hivm-compile=true", "enable-triton-kernel-compile=true")

OVERFLOW = re.compile(r"(\w+) overflow, requires (\d+) bits while (\d+) bits")
POINTER = re.compile(r"hivm\.hir\.pointer_cast\(([^)]*)\)[^:\n]*: memref<([^,>]*)[^\n]*?#hivm\.address_space<(\w+)>")
SHAPE = re.compile(r"((?:[\d?]+x)*)(.+)")
CONSTANT = re.compile(r"(%\S+) = arith\.constant (-?\d+) : i64")
ERROR = re.compile(r"error: (.*)")
ABORT = re.compile(r"^.*(?:LLVM ERROR: |Assertion )(.*\S)", re.MULTILINE)
NOT_THE_KERNELS = (
    "External hivmc run fails",
    "Failed to run BiShengHIR pipeline",
)  # said for every failure, or for none


@dataclass(frozen=True)
class Plan:
    """What the compiler made of one kernel: the memory it planned, or why it gave up."""

    text: str = ""  # HIVM
    buffers: Mapping[str, int] = field(default_factory=dict)  # bytes of UB, L1 and L0C in use at most
    error: str = ""
    overflow: tuple[str, int, int] | None = None  # the memory, the bytes needed and the bytes there are


@cache
def compiler() -> Path | None:
    """Return the path of `bishengir-compile`, where the package is installed."""
    spec = find_spec("ascendnpuir")
    folders = spec.submodule_search_locations if spec is not None else None
    found = Path(folders[0]) / "bin" / "bishengir-compile" if folders else None
    return found if found is not None and found.exists() else None


def release() -> str:
    """Return the version of the installed package, empty without it."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


def plan(linalg: str, arch: str, options: Mapping[str, Any]) -> Plan:
    """Return what the compiler makes of `linalg` (text) for `arch` with triton-ascend's `options` by field name.

    Raises `FileNotFoundError` where the compiler is not installed.
    """
    program = compiler()
    if program is None:
        raise FileNotFoundError(f"{DISTRIBUTION} is not installed: portability env create ascend")
    flags = [f"{flag}={options[name]}" for name, flag in FLAGS.items() if options.get(name) is not None]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ttadapter.mlir")
        source.write_text(linalg)
        done = subprocess.run(
            [program, source, *(f"--{f}" for f in (f"target={arch}", *flags, *FIXED)), f"--save-temps={folder}",
             "-o", Path(folder, "kernel")],
            capture_output=True, text=True, errors="replace", cwd=folder, check=False,
        )  # fmt: skip
        made = Path(folder, RESULT)
        return _judge(done.returncode, done.stdout + done.stderr, made.read_text() if made.exists() else "")


def _judge(code: int, said: str, text: str) -> Plan:
    overflow = OVERFLOW.search(said)
    if overflow:
        memory = MEMORIES.get(overflow[1].lower(), overflow[1])
        return Plan(error=overflow[0], overflow=(memory, int(overflow[2]) // 8, int(overflow[3]) // 8))
    if code < 0:
        ended = f"bishengir-compile was ended by {signal.Signals(-code).name}"
        return Plan(error=": ".join([ended, *ABORT.findall(said)[:1]]))
    errors = [e for e in ERROR.findall(said) if not e.startswith(NOT_THE_KERNELS)]
    if errors or not text:
        return Plan(error="\n".join(errors) or f"bishengir-compile: exit code {code}: {said.strip()[-500:]}")
    return Plan(text, planned(text))


def planned(hivm: str) -> dict[str, int]:
    """Return the bytes of each memory up to the end of the highest buffer in the HIVM text."""
    constants = {name: int(value) for name, value in CONSTANT.findall(hivm)}
    peak: dict[str, int] = {}
    for offsets, shape, space in POINTER.findall(hivm):
        memory = MEMORIES.get(space, space)
        for offset in offsets.split(","):  # one for each copy of a multi-buffered tile
            start = constants.get(offset.strip())
            if start is not None:
                peak[memory] = max(peak.get(memory, 0), start + size_of(shape))
    return peak


def size_of(shape: str) -> int:
    """Return the bytes of a memref ("128x64xf16"); 0 if a dimension is dynamic, since it then has no place of its own.

    Elements take whole bytes: i1 takes one. `index` takes eight.
    """
    dimensions, element = SHAPE.fullmatch(shape).groups()  # type: ignore[union-attr]  # it matches every memref
    sizes = [int(d) if d.isdigit() else 0 for d in dimensions.split("x")[:-1]]
    bits = re.search(r"\d+", element)
    return math.prod(sizes) * (max(1, int(bits[0]) // 8) if bits else 8)


def to_text(made: Plan) -> str:
    """Return `made` as JSON."""
    return json.dumps(asdict(made))


def from_text(text: str) -> Plan:
    """Return the plan that `to_text` wrote."""
    data = json.loads(text)
    overflow = data.pop("overflow")
    return Plan(**data, overflow=tuple(overflow) if overflow else None)
