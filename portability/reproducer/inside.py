"""A runner's side: the shapes of samples, and the file of one failure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from portability import backend as backends
from portability import compare
from portability import kernel as kernels
from portability.backend import Backend, Session
from portability.kernel import Blocks, Inputs, KernelCase
from portability.model import Cell, Target, from_json
from portability.record.replay import asked
from portability.reproducer import change as changes
from portability.reproducer.change import Change
from portability.reproducer.compiling import drafting
from portability.reproducer.literals import UnwritableError
from portability.reproducer.trace import Trace, tracing
from portability.reproducer.values import Execution, text
from portability.reproducer.ways import WAYS
from portability.run import Options, inputs_of

Opened = Callable[[Session], None]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shapes of the case's samples, or write the file of a failure; see `portability.reproducer.session`."""
    case, opened = _subject(request)
    if request["what"] == "shapes":
        return {"shapes": _shapes(case, request)}
    try:
        return {"unwritable": "", **_write(case, opened, request)}
    except UnwritableError as error:
        return {"unwritable": str(error)}


def _subject(request: Mapping[str, Any]) -> tuple[KernelCase, Opened]:
    """Return the case, or the recorded launch as one; and what is to be told of the session that it is called in."""
    if "calls" in request:
        replay = asked(request)
        return replay.case(from_json(Cell, request["cell"])), replay.opened
    return kernels.discover(tuple(request.get("kernels", ()))).cases[request["cell"]["kernel"]], lambda _: None


def _shapes(case: KernelCase, request: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    """The shapes of every sample that is not for timing, at the cell's dtype; one that cannot be made is left out."""
    cell, options, blocks = from_json(Cell, request["cell"]), Options(**request["options"]), Blocks(request["blocks"])
    found = {}
    for sample in case.samples:
        if not sample.bench and (not sample.dtypes or cell.dtype in sample.dtypes):
            with contextlib.suppress(Exception):  # a sample may need blocks of its own: it is no smaller one then
                made = inputs_of(case, sample, getattr(torch, cell.dtype), blocks, options.seed)
                found[sample.name] = changes.shapes(made)
    return found


def _write(case: KernelCase, opened: Opened, request: Mapping[str, Any]) -> dict[str, Any]:
    cell, target = from_json(Cell, request["cell"]), from_json(Target, request["target"])
    adapter = backends.discover(tuple(request.get("backends", ())))[target.backend]
    options, blocks = Options(**request["options"]), Blocks(request["blocks"])
    small = changes.changed(case, cell.sample, request["change"])
    inputs = inputs_of(small, small.samples[0], getattr(torch, cell.dtype), blocks, options.seed)
    path, heading = Path(request["path"]), str(request["heading"])
    if target.evidence.executes:
        kept = inputs_of(small, small.samples[0], getattr(torch, cell.dtype), blocks, options.seed)
        written = _execution(small, adapter, target, (inputs, kept), blocks, opened, request, heading)
        path.write_text(written, encoding="utf-8")
        return {}
    limits, refused = adapter.limits_of(target.id), []
    with contextlib.suppress(Exception):  # what it raises is what the file shows
        try:
            with adapter.open(target) as session, drafting(heading, limits, lambda t: _save(path, t)):
                opened(session)
                small.operator(*inputs, blocks=blocks)
        except UnwritableError as error:
            refused.append(error)
    if refused:
        raise refused[0]
    if not path.exists():
        raise UnwritableError("nothing was launched: the failure is in the operator, before any kernel")
    return {}


def _save(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")


def _execution(
    case: KernelCase, adapter: Backend, target: Target, twice: tuple[Inputs, Inputs], blocks: Blocks,
    opened: Opened, request: Mapping[str, Any], heading: str,
) -> str:  # fmt: skip
    """Call the operator once more on the first of two equal inputs, recorded, and return the file."""
    inputs, kept = twice
    device = adapter.tensor_device(target)
    placed = tuple(x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs)
    trace = Trace()
    outputs: tuple[torch.Tensor, ...] = ()
    for i, x in enumerate(placed):
        for j, t in enumerate([x] if isinstance(x, torch.Tensor) else x if isinstance(x, (list, tuple)) else []):
            if isinstance(t, torch.Tensor):
                trace.name(t, f"x{i}" if isinstance(x, torch.Tensor) else f"x{i}_{j}")
    with adapter.open(target) as session:
        opened(session)
        session.vary(0, 0)
        with contextlib.suppress(Exception), tracing(trace):  # what it raises is what the file shows
            outputs = compare.outputs_of(case.operator(*placed, blocks=blocks))
    way = WAYS[request["way"]]
    expected = compare.expect(case, kept, [o.dtype for o in outputs]) if way.name == "values" and outputs else ()
    made = Execution(
        kept, trace, outputs, expected, from_json(Change, dict(request["change"])),
        getattr(case.operator, "__qualname__", case.name), device.partition(":")[0],
    )  # fmt: skip
    return text(made, way, heading)
