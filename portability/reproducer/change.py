"""A sample made smaller or plainer, in the same layout, so that what fails on it is easier to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from portability.kernel import Draw, Inputs, KernelCase, Sample
from portability.model import from_json

OWN, WHOLE, DRAWN = "own", "whole", "drawn"  # a sample's own values; small whole numbers; normal ones of a seed
SEED = 0


@dataclass(frozen=True)
class Change:
    """What is made of a sample: every dimension of size `from` in `sizes` becomes `to`, and so do numbers among the
    inputs where `scalars` says so; floating values are replaced as `values` says.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    scalars: bool = False
    values: str = OWN

    def size(self, n: int) -> int:
        """Return what a size becomes."""
        return self.sizes.get(str(n), n)


def changed(case: KernelCase, sample: str, change: Mapping[str, Any]) -> KernelCase:
    """Return the case with one sample, changed."""
    kept, asked = case.sample(sample.partition(".as.")[0]), from_json(Change, dict(change))
    return replace(case, samples=[Sample(kept.name, lambda draw: _inputs(kept, draw, asked))], sweep=None)


def _inputs(sample: Sample, draw: Draw, change: Change) -> Inputs:
    return tuple(_input(x, change, i) for i, x in enumerate(sample.inputs(draw)))


def _input(x: Any, change: Change, number: int) -> Any:
    if isinstance(x, torch.Tensor):
        return _replaced(_resized(x, change), change, number)
    if type(x) is int and change.scalars:
        return change.size(x)
    if type(x) in (tuple, list):
        return type(x)(_input(v, change, number) for v in x)
    return x


def _resized(x: torch.Tensor, change: Change) -> torch.Tensor:
    shape = [change.size(n) for n in x.shape]
    if shape == list(x.shape):
        return _indices_within(x, x, change)
    cut = x[tuple(slice(0, n) for n in shape)]
    strides = _strides(x, shape)
    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if cut.numel() else 0
    made = x.new_zeros(x.storage_offset() + extent).as_strided(shape, strides, x.storage_offset())
    distinct = tuple(slice(0, 1 if s == 0 else None) for s in strides)
    made[distinct].copy_(_indices_within(cut, x, change)[distinct])
    return made


def _strides(x: torch.Tensor, shape: Sequence[int]) -> list[int]:
    """Return the strides of `x` at another shape: the same order of dimensions, and the same gaps between elements."""
    strides = list(x.stride())
    dense, new_dense = 1, 1
    for d in sorted(range(x.ndim), key=lambda d: (x.stride(d), x.shape[d])):
        if x.stride(d) == 0:
            continue
        gap, rest = divmod(x.stride(d), dense)
        strides[d] = new_dense * max(1, gap) if rest == 0 else x.stride(d)
        dense, new_dense = x.stride(d) * x.shape[d], strides[d] * shape[d]
    return strides


def _indices_within(cut: torch.Tensor, x: torch.Tensor, change: Change) -> torch.Tensor:
    """Whole numbers that lie below a size that becomes smaller may be indices of it: take them modulo the new one."""
    if x.dtype not in (torch.int32, torch.int64) or not x.numel() or int(x.min()) < 0:
        return cut
    most = int(x.max())
    sizes = sorted(int(n) for n in change.sizes if int(n) > most)
    return cut % max(1, change.size(sizes[0])) if sizes else cut


def _replaced(x: torch.Tensor, change: Change, number: int) -> torch.Tensor:
    if change.values == OWN or not x.dtype.is_floating_point:
        return x
    made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) if x.storage_offset() == 0 else x.clone()
    return made.copy_(whole(x.shape) if change.values == WHOLE else drawn(x.shape, number))


def whole(shape: Sequence[int]) -> torch.Tensor:
    """Small whole numbers, exact in every dtype."""
    n = int(torch.Size(shape).numel())
    return (torch.arange(n) % 7 - 3).reshape(tuple(shape)).float()


def drawn(shape: Sequence[int], number: int) -> torch.Tensor:
    """Normal values of a seed of the input's own."""
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(SEED + number))


def shapes(inputs: Sequence[Any]) -> list[list[int]]:
    """Return the shapes of the tensors among the inputs, and numbers as shapes of one size."""
    found: list[list[int]] = []
    for x in inputs:
        if isinstance(x, torch.Tensor):
            found.append(list(x.shape))
        elif type(x) in (tuple, list):
            found += shapes(x)
    return found
