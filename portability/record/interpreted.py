"""A recorded launch under the checked interpreter, on tensors that are drawn anew: their values were not recorded.

A recording holds how tensors lie in memory and nothing of what is in them. So nothing is compared with a reference, and
what is found is what does not depend on values: accesses out of bounds, values that nobody defined, and results that
depend on the order of programs. Floating tensors are uniform in [0, 1), so that sums do not cancel; integer tensors are
zero, since a kernel may take them for indices, and what a launch does only with others is not seen. Programs that meet
where all indices are zero may not where they differ: so a launch that fails by that is interpreted once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from portability.kernel import Draw, KernelCase, Sample
from portability.model import Cell
from portability.record.arguments import dtype_of, storages, tensors
from portability.record.model import Call

# Elements that programs add up in another order may differ by what sums in bfloat16 do: no other dtype's differ more.
ACCUMULATES = "bfloat16"


OUTPUT = re.compile(r"\boutput (\d+)\b")
Tensor = Callable[[Mapping[str, Any]], Any]  # makes an argument of a recorded tensor


def case_of(
    cell: Cell, call: Call, launch: Callable[[Tensor], None], against: Callable[[Tensor], None] | None = None,
    distinct: bool = False,
) -> KernelCase:  # fmt: skip
    """Return a launch as a kernel case: its inputs are storages, which it may write, and its outputs are these again.

    `launch(tensor)` launches, with `tensor` to make an argument of a recorded tensor. Each execution is compared with
    what `against` gives, a launch of the same kernel with other blocks; without it, with the first one. Where integers
    are `distinct`, they are 0, 1, 2, ….
    """
    given = [t for v in call.arguments.values() for t in tensors(v)]
    first: list[torch.Tensor] = []

    def operator(*held: torch.Tensor, blocks: Any = None) -> tuple[torch.Tensor, ...]:  # noqa: ARG001 - a case's
        if against is not None and not first:
            first.extend(s.clone() for s in held)
            against(lambda data: _view(first[data["storage"]], data))
        launch(lambda data: _view(held[data["storage"]], data))
        if not first:
            first.extend(s.clone() for s in held)
        return held

    def itself(*_: Any) -> tuple[torch.Tensor, ...]:
        """What the execution gave that the others are compared with."""
        return tuple(s.double() if s.is_floating_point() else s for s in first)

    def magnitudes(*_: Any) -> tuple[torch.Tensor, ...]:
        """What an element may have added up is not known; the largest element says of which size it is."""
        return tuple(
            torch.full(t.shape, float(t.double().abs().max()) if t.numel() else 0.0).double() for t in itself()
        )

    return KernelCase(
        name=cell.kernel, operator=operator, reference=itself, terms=magnitudes, dtypes=[cell.dtype],
        deterministic=False,
        samples=[Sample(cell.sample, lambda draw: _drawn(draw, given, distinct))], accumulates=ACCUMULATES,
        mutates=tuple(range(len(storages(given)))),
    )  # fmt: skip


def named(call: Call, detail: str) -> str:
    """Return what was found with arguments' names: an output is a storage, and has a number alone."""
    names: dict[int, str] = {}
    for name, value in call.arguments.items():
        for t in tensors(value):
            names.setdefault(t.get("storage", -1), name)
    known = [names[i] for i in sorted(names)]
    return OUTPUT.sub(lambda m: known[int(m[1])] if int(m[1]) < len(known) else m[0], detail)


def indexed(call: Call) -> bool:
    """Return whether a launch is given tensors that may hold indices."""
    return any("int" in t["dtype"] and t["shape"] for v in call.arguments.values() for t in tensors(v))


def _drawn(draw: Draw, given: Sequence[Mapping[str, Any]], distinct: bool) -> tuple[torch.Tensor, ...]:
    """Return one flat tensor a storage, of the dtype of the first tensor in it."""
    made: dict[int, torch.Tensor] = {}
    for t in given:
        if t["storage"] in made:
            continue
        dtype = _stored(t["dtype"])
        count = t["bytes"] // dtype.itemsize
        if dtype.is_floating_point:
            made[t["storage"]] = draw.uniform(count, dtype=dtype)
        elif distinct and dtype is not torch.bool:
            made[t["storage"]] = torch.arange(count).to(dtype)
        else:
            made[t["storage"]] = torch.zeros(count, dtype=dtype)
    return tuple(made[i] for i in sorted(made))


def _view(storage: torch.Tensor, data: Mapping[str, Any]) -> Any:
    """Return an argument that begins in its storage where the recorded one did, and reaches to the storage's end.

    A program may hand over a part of a tensor and mean all of it: only what leaves the storage is surely a fault.
    """
    import triton

    dtype = dtype_of(data["dtype"])
    reinterpreted = not isinstance(dtype, torch.dtype)  # Triton's own name of a dtype
    typed = storage if reinterpreted or storage.dtype == dtype else storage.view(dtype)
    rest = typed[data.get("at", 0) :]
    if data.get("whole"):  # of a descriptor, whose shape counts
        rest = rest.as_strided(data["shape"], data["strides"], rest.storage_offset())
    return triton.reinterpret(rest, dtype) if reinterpreted else rest


def _stored(name: str) -> torch.dtype:
    dtype = dtype_of(name)
    return dtype if isinstance(dtype, torch.dtype) else torch.uint8
