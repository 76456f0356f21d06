"""In a runner: one cell compiled for its target, and every stage of what its launches made.

The cell runs as in the matrix, so that specialisation, limits and errors are the same. Stages come out of the compiled
kernels, which hold them whether they were made now or came from a cache; passes are printed only while a compiler runs,
so that these are compiled anew, into a cache folder of their own.
"""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from portability import backend as backends
from portability import kernel as kernels
from portability.backend import Backend, Launch
from portability.checks.cell import Watched
from portability.checks.collect import definition
from portability.kernel import Blocks, relative
from portability.model import Cell, Observation, Resources, Target, from_json, to_json
from portability.run import Options, run_cell
from portability.stages import passes, sass
from portability.stages.model import Answer, Compiled

TEXT = ("source", "json")  # neither is a stage: the first is Triton's IR before any pass, under another name
PRINT_PASSES = "MLIR_ENABLE_DUMP"


def collect(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what compiling `request["cell"]` made, an `Answer` as JSON's types.

    "passes" asks for the IR after each pass, "sass" for NVIDIA's machine code.
    """
    cell, target = from_json(Cell, request["cell"]), from_json(Target, request["target"])
    case = kernels.discover(tuple(request.get("kernels", ()))).cases[cell.kernel]
    adapter = Watched(backends.discover(tuple(request.get("backends", ())))[target.backend], lambda _: None)
    options, blocks = Options(**request["options"]), Blocks(request["blocks"])
    with _printing_passes() if request.get("passes") else contextlib.nullcontext():
        observation = run_cell(cell, case, cast(Backend, adapter), target, blocks, "", options)
    launches = [launch for session in adapter.sessions for launch in session.launches]
    notes: list[str] = []
    made = tuple(_distinct(launches, observation, Path(options.root), bool(request.get("sass")), notes))
    answer = Answer(
        observation.evidence, observation.outcome, made, observation.detail, observation.line, dict(blocks),
        tuple(dict.fromkeys(notes)),
    )  # fmt: skip
    data: dict[str, Any] = to_json(answer)
    return data


@contextlib.contextmanager
def _printing_passes() -> Iterator[None]:
    """Make the compiler print its passes, and compile in a cache folder of its own: a warm one prints nothing."""
    names = ("TRITON_CACHE_DIR", PRINT_PASSES)
    before = {n: os.environ.get(n) for n in names}
    with tempfile.TemporaryDirectory(prefix="cell-") as folder:
        os.environ.update({"TRITON_CACHE_DIR": folder, PRINT_PASSES: "1"})
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _distinct(
    launches: list[Launch], observation: Observation, root: Path, wants_sass: bool, notes: list[str]
) -> Iterator[Compiled]:
    """Yield one record for each binary, and one for each launch that made none."""
    resources = {r.hash: r for r in observation.resources}
    seen: dict[str, int] = {}
    for i, launch in enumerate(launches):
        if launch.hash and any(earlier.hash == launch.hash for earlier in launches[:i]):
            continue
        times = seen[launch.kernel] = seen.get(launch.kernel, 0) + 1
        label = launch.kernel if times == 1 else f"{launch.kernel}#{times}"
        count = sum(bool(launch.hash) and other.hash == launch.hash for other in launches) or 1
        yield _compiled(launch, label, count, resources.get(launch.hash[:16]), root, wants_sass, notes)


def _compiled(
    launch: Launch, label: str, count: int, resources: Resources | None, root: Path, wants_sass: bool, notes: list[str]
) -> Compiled:
    asm = {k: v for k, v in getattr(launch.compiled, "asm", {}).items() if k not in TEXT}
    text = {k: v for k, v in asm.items() if isinstance(v, str)}
    if wants_sass and "cubin" in asm:
        try:
            text["sass"] = sass.disassemble(asm["cubin"])
        except sass.NoDisassemblerError as error:
            notes.append(str(error))
    line = f"{relative(launch.file, root)}:{definition(launch)}" if launch.file else ""
    return Compiled(
        label=label,
        kernel=launch.kernel,
        line=line,
        signature={k: str(v) for k, v in launch.signature.items()},
        constants={k: str(v) for k, v in launch.constants.items()},
        options={k: str(v) for k, v in launch.options.items() if k != "warmup"},
        config=launch.config,
        grid=launch.grid,
        warps=launch.num_warps,
        launches=count,
        stages=text,
        binaries={k: base64.b64encode(v).decode() for k, v in asm.items() if isinstance(v, bytes)},
        resources=resources,
        passes=passes.read(launch.stderr),
        error=str(launch.error) if launch.error is not None else "",
    )
