"""Tensors that a file leaves on the host: `run(dev)` makes them without `dev`, and hands them to a kernel.

Under the interpreter every tensor is on the CPU, so that nothing is missed there; a launcher for a device refuses such
a pointer. Storages are followed from the call that made them to the launch. What cannot be told is not reported.

What `run` takes to its device is a copy there. So it is here: a kernel that works in place leaves the host's own alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.utils._device
from torch.overrides import TorchFunctionMode

CODE = "host-tensor"
MESSAGE = "{} is on the host: it was made without the device that run(dev) was given, and no device's launcher takes it"
PLAIN = (torch.Tensor, torch.nn.Parameter)  # a subclass may have no storage of its own
COPIES = (torch.Tensor.to, torch.as_tensor, torch.asarray)  # to a device, or nothing where the tensor is there already
MOVES = ("cuda", "npu", "xpu", "pin_memory", "share_memory_")  # methods that a tensor leaves plain memory by


class Hosts(TorchFunctionMode):
    """Follows tensors while `run` is called; `session` is an opened interpreter, which shows what a launch is given."""

    def __init__(self, session: Any) -> None:
        super().__init__()
        self._session = session
        self._kept: dict[int, torch.Tensor] = {}  # by their storage's address: a freed one could be given out again
        self._moved: dict[int, torch.Tensor] = {}  # likewise: those on the device, and what was made of them
        session.launching.append(self._judge)

    def __enter__(self) -> Hosts:
        """`run` is called once more."""
        self._kept.clear()
        self._moved.clear()
        super().__enter__()  # type: ignore[no-untyped-call]  # torch's own class is untyped
        return self

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, and note where what it makes must be."""
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        placed = _placed(func, args, kwargs)
        given = list(_tensors((args, kwargs)))
        if placed and func in COPIES and any(made is t for t in given) and self._comes_from_host(made):
            made = _copied(made)
        moved = placed or any(type(t) in PLAIN and _storage(t) in self._moved for t in given)
        for tensor in _tensors(made):
            if type(tensor) not in PLAIN or not tensor.numel():
                continue
            if moved:
                self._moved[_storage(tensor)] = tensor
            if placed:
                self._kept.pop(_storage(tensor), None)
            elif all(self._on_host(t) for t in given):
                self._kept[_storage(tensor)] = tensor
        return made

    def _comes_from_host(self, tensor: torch.Tensor) -> bool:
        """Whether taking a tensor to the device copies it there; one that gathers a gradient is left as it is."""
        plain = type(tensor) in PLAIN and tensor.layout is torch.strided and tensor.numel() > 0
        return plain and not tensor.requires_grad and _storage(tensor) not in self._moved

    def _on_host(self, tensor: torch.Tensor) -> bool:
        return type(tensor) in PLAIN and _storage(tensor) in self._kept

    def _judge(self, arguments: Mapping[str, Any]) -> None:
        for name, value in arguments.items():
            if any(self._on_host(t) for t in _tensors(getattr(value, "base", value))):
                self._session.report.warn(CODE, MESSAGE.format(name), self._session.targets.every())


def _placed(func: Any, args: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether a call says where its result is to be, or leaves it where a default does."""
    if getattr(torch.utils._device, "CURRENT_DEVICE", None) is not None:
        return True
    if kwargs.get("device") is not None or kwargs.get("pin_memory") or getattr(func, "__name__", "") in MOVES:
        return True
    return func is torch.Tensor.to and any(isinstance(a, (str, int, torch.device, torch.Tensor)) for a in args[1:])


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with all that the tensor is a view of, so that what lies beside it lies there too."""
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    whole = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]  # torch's own
    return empty.set_(whole, tensor.storage_offset(), tensor.shape, tensor.stride())


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0  # 0 is none


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in what a function was given or gave."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (t for v in value.values() for t in _tensors(v))
    elif isinstance(value, (tuple, list)):
        yield from (t for v in value for t in _tensors(v))
