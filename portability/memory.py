"""Memory that tells: every tensor between guard zones, every unwritten output filled with a value that shows.

`Memory` is a torch mode: tensors that an operator allocates inside it lie between two zones of a known pattern, and
`torch.empty` is filled with a poison that no correct kernel lets through. Inputs are placed the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ZONE_BYTE = 0xA5
ALIGNED = 16  # bytes: what Triton specialises pointers by
aten = torch.ops.aten
_EMPTY = {aten.empty.memory_format, aten.empty_strided.default, aten.empty_like.default}
_EMPTY |= {aten.new_empty.default, aten.new_empty_strided.default}
_FILLED = {aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, aten.ones.default}
_FILLED |= {aten.ones_like.default, aten.full.default, aten.full_like.default, aten.new_full.default}


@dataclass(frozen=True)
class Breach:
    """Bytes of a guard zone that were written."""

    tensor: str
    side: str  # before, after
    bytes: int
    nearest: int  # bytes between the tensor and the nearest one

    def __str__(self) -> str:
        return f"{self.tensor}: {self.bytes} bytes written {self.side} it, the nearest {self.nearest} bytes away"


class Memory(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own class is untyped
    """Allocate between guard zones of `zone` bytes (0: none), and poison what is not written.

    `poison` 0 fills with NaN (integers: their largest value), 1 with another value; a result that depends on which is
    used read memory that nobody wrote.
    """

    def __init__(self, zone: int, poison: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.zone, self.poison = zone, poison
        self._held: list[tuple[str, torch.Tensor, int, int]] = []  # name, bytes, start, end of the tensor's own

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call imports the whole of torch's compiler: seconds, in every process

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        real = isinstance(made, torch.Tensor) and made.layout is torch.strided and made.device.type != "meta"
        if real and made.numel():
            if func in _EMPTY:
                guarded = self._guard(f"allocation {len(self._held)} of shape {tuple(made.shape)}", made)
                _poison(guarded, self.poison)
                return guarded
            if func in _FILLED and self.zone:
                return self._guard(f"allocation {len(self._held)} of shape {tuple(made.shape)}", made).copy_(made)
        return made

    def place(self, name: str, tensor: torch.Tensor, device: str, moved: int = 0) -> torch.Tensor:
        """Return a copy of `tensor` on `device` with its strides and its misalignment, between guard zones.

        `moved` elements further on than where it would lie.
        """
        with _no_dispatch():
            skew = (tensor.data_ptr() + moved * tensor.element_size()) % ALIGNED
            placed = self._guard(name, tensor, torch.device(device), skew)
            fill(placed, tensor)
            return placed

    def breaches(self) -> list[Breach]:
        """Return the guard zones that were written, after everything launched has ended."""
        with _no_dispatch():
            return [b for name, raw, start, end in self._held for b in _check(name, raw, start, end)]

    def release(self) -> None:
        """Forget the tensors, so that their memory can be used again."""
        self._held.clear()

    def _guard(self, name: str, like: torch.Tensor, device: torch.device | None = None, skew: int = 0) -> torch.Tensor:
        size, item = like.element_size(), like.numel()
        extent = (sum((n - 1) * s for n, s in zip(like.shape, like.stride(), strict=True)) + 1) * size if item else 0
        start = self.zone + skew
        with _no_dispatch():
            raw = torch.full((start + extent + self.zone,), ZONE_BYTE, dtype=torch.uint8, device=device or like.device)
            if self.zone:
                self._held.append((name, raw, start, start + extent))
            body = raw[start : start + extent].view(like.dtype) if extent else raw[start:start].view(like.dtype)
            return body.as_strided(like.shape, like.stride(), body.storage_offset())


def _no_dispatch() -> contextlib.AbstractContextManager[Any]:
    guard: Callable[[], contextlib.AbstractContextManager[Any]] = torch.utils._python_dispatch._disable_current_modes
    return guard()


def _check(name: str, raw: torch.Tensor, start: int, end: int) -> Iterable[Breach]:
    for side, zone in (("before", raw[:start]), ("after", raw[end:])):
        touched = torch.nonzero(zone != ZONE_BYTE).flatten()
        if touched.numel():
            nearest = start - 1 - int(touched[-1]) if side == "before" else int(touched[0])
            yield Breach(name, side, touched.numel(), nearest)


def _poison(tensor: torch.Tensor, poison: int) -> None:
    with _no_dispatch():
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            tensor.fill_(float("nan") if poison == 0 else -7.25)
        elif tensor.dtype is torch.bool:
            tensor.fill_(poison == 0)
        else:
            tensor.fill_(torch.iinfo(tensor.dtype).max if poison == 0 else 91)


def fill(tensor: torch.Tensor, values: torch.Tensor | None = None) -> None:
    """Write `values`, or zeros, into a tensor of any strides: an expanded dimension is one element, written once."""
    distinct = tuple(slice(0, 1 if stride == 0 else None) for stride in tensor.stride())
    if values is None:
        tensor[distinct].zero_()
    else:
        tensor[distinct].copy_(values[distinct])


def unchanged(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Return whether two tensors of one shape and dtype hold the same bits."""
    return torch.equal(bits(before), bits(after))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's elements in order, on the CPU."""
    flat = tensor.detach().cpu().contiguous()
    # One element may have any stride and still be called contiguous.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)
