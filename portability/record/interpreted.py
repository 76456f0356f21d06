"""A recorded launch under the checked interpreter, on tensors that are drawn anew: their values were not recorded.

A recording holds how tensors lie in memory and nothing of what is in them. So nothing is compared with a reference, and
what is found is what does not depend on values: accesses out of bounds, values that nobody defined, and results that
depend on the order of programs. Floating tensors are uniform in [0, 1), so that sums do not cancel; integer tensors are
zero, since a kernel may take them for indices, and what a launch does only with others is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from portability.kernel import Draw, KernelCase, Sample
from portability.model import Cell
from portability.record.arguments import dtype_of, storages, tensors
from portability.record.model import Call

# Elements that programs add up in another order may differ by what sums in bfloat16 do: no other dtype's differ more.
ACCUMULATES = "bfloat16"


Tensor = Callable[[Mapping[str, Any]], Any]  # makes an argument of a recorded tensor


def case_of(
    cell: Cell, call: Call, launch: Callable[[Tensor], None], against: Callable[[Tensor], None] | None = None
) -> KernelCase:
    """Return a launch as a kernel case: its inputs are storages, which it may write, and its outputs are these again.

    `launch(tensor)` launches, with `tensor` to make an argument of a recorded tensor. Each execution is compared with
    what `against` gives, a launch of the same kernel with other blocks; without it, with the first one.
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
        samples=[Sample(cell.sample, lambda draw: _drawn(draw, given))], accumulates=ACCUMULATES,
        mutates=tuple(range(len(storages(given)))),
    )  # fmt: skip


def _drawn(draw: Draw, given: Sequence[Mapping[str, Any]]) -> tuple[torch.Tensor, ...]:
    """Return one flat tensor a storage, of the dtype of the first tensor in it."""
    made: dict[int, torch.Tensor] = {}
    for t in given:
        if t["storage"] in made:
            continue
        dtype = _stored(t["dtype"])
        count = t["bytes"] // dtype.itemsize
        made[t["storage"]] = (
            draw.uniform(count, dtype=dtype) if dtype.is_floating_point else torch.zeros(count, dtype=dtype)
        )
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
