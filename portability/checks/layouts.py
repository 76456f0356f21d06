"""Inputs of the same values that lie elsewhere in memory: a wrapper that is right for one layout alone shows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Change = Callable[[torch.Tensor], torch.Tensor]


class Changed:
    """What stands for a file's `data`: the same values, each contiguous tensor in another place."""

    def __init__(self, data: Callable[[], Any], change: Change, which: Collection[int] | None = None) -> None:
        """Change those tensors whose number, in their order, is among `which`; None: all."""
        self._data, self._change, self._which = data, change, which

    def __call__(self) -> Any:
        """Return what the file's own would, moved."""
        return _changed(self._data(), self._moved, count())

    def _moved(self, tensor: torch.Tensor, number: int) -> torch.Tensor:
        asked = self._which is None or number in self._which
        return self._change(tensor) if asked and tensor.numel() > 1 and tensor.is_contiguous() else tensor


class Asked(TorchFunctionMode):
    """Which tensors of `data` a wrapper asks for their layout, or makes contiguous: it means to take any of these.

    `data` stands for the file's own while `run` is called in this mode; `found` holds their numbers afterwards.
    """

    def __init__(self, data: Callable[[], Any], strides: bool) -> None:
        """Take strides that are asked for as well, where a wrapper compares them."""
        super().__init__()
        self._data = data
        self._looks = (*LOOKS, *((torch.Tensor.stride,) if strides else ()))
        self._numbers: dict[int, int] = {}  # by a storage's address
        self._kept: list[torch.Tensor] = []  # so that no other storage comes to that address
        self.found: set[int] = set()

    def data(self) -> Any:
        """Return what the file's own would."""
        return _changed(self._data(), self._given, count())

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, and note what it is asked of."""
        made = func(*args, **(kwargs or {}))
        number = self._numbers.get(_storage(args[0])) if args and type(args[0]) in PLAIN else None
        if number is not None and func in self._looks:
            self.found.add(number)
        elif number is not None and func is torch.Tensor.to:
            self._given(made, number)
        return made

    def _given(self, tensor: torch.Tensor, number: int) -> torch.Tensor:
        if type(tensor) not in PLAIN:
            return tensor
        self._numbers[_storage(tensor)] = number
        self._kept.append(tensor)
        return tensor


PLAIN = (torch.Tensor, torch.nn.Parameter)  # a subclass may have no storage of its own
LOOKS = (torch.Tensor.is_contiguous, torch.Tensor.contiguous)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def _changed(data: Any, change: Callable[[torch.Tensor, int], torch.Tensor], numbers: Iterator[int]) -> Any:
    if isinstance(data, torch.Tensor):
        return change(data, next(numbers))
    if isinstance(data, Mapping):
        return {k: _changed(v, change, numbers) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_changed(v, change, numbers) for v in data)
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
