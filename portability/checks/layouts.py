"""Inputs of the same values that lie elsewhere in memory: a wrapper that is right for one layout alone shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Change = Callable[[torch.Tensor], torch.Tensor]


class Changed:
    """What stands for a file's `data`: the same values, each contiguous tensor in another place."""

    def __init__(self, data: Callable[[], Any], change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._data, self._change = data, change

    def __call__(self) -> Any:
        """Return what the file's own would, moved."""
        return _changed(self._data(), self._change)


def _changed(data: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(data, torch.Tensor):
        return change(data) if data.numel() > 1 and data.is_contiguous() else data
    if isinstance(data, Mapping):
        return {k: _changed(v, change) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_changed(v, change) for v in data)
    return data


def shifted(tensor: torch.Tensor) -> torch.Tensor:
    """Start one element into a larger storage, so that the address is no multiple of 16 bytes."""
    larger = tensor.new_zeros(tensor.numel() + 1)
    larger[1:] = tensor.reshape(-1)
    return larger[1:].view(tensor.shape)


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """Swap the last two dimensions' strides; of one dimension, take every other element of a longer one."""
    if tensor.ndim > 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    wide = tensor.new_zeros(tensor.numel() * 2)
    wide[::2] = tensor
    return wide[::2]


OFFSET: tuple[tuple[str, Change], ...] = (("that start one element into their storage", shifted),)
STRIDES: tuple[tuple[str, Change], ...] = (("with other strides", strided),)
