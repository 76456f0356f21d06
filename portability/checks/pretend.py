"""A device that is not there, for wrappers that ask for it while their kernels are only compiled.

A wrapper may allocate on "cuda", assert `x.is_cuda`, or ask for the number of multiprocessors. Under `pretend`, tensors
are on the CPU and say that they are on the device, and the device's properties are the target's limits. Nothing is
computed by kernels, and memory that only a kernel would write is zero, so that an index made of it is in bounds.

torch's own names are replaced rather than a mode entered: a mode is off within custom operators and backward passes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType
from typing import Any

import torch

from portability.backend import Backend
from portability.checks.pretended import answers

# Functions of torch that make a tensor on a device, beside those whose documentation says `device`.
FACTORIES = ("empty_permuted", "empty_quantized", "scalar_tensor", "tensor", "as_tensor", "asarray")
AUTOCAST = ("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype")  # by device
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")
METHODS = ("to", "new_tensor", "new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full", "type")
MODULES = (torch, torch.fft)


@contextlib.contextmanager
def pretend(adapter: Backend, target: str) -> Iterator[None]:
    """Let CPU tensors pass for tensors on the adapter's device, with the properties of `target`."""
    kind, runtime = adapter.device, getattr(adapter, "runtime", "")  # of DeviceBackend: what torch is built with
    with contextlib.ExitStack() as stack:
        for place, changed in (
            *answers(kind, target, adapter.limits_of(target), runtime),
            *((m, _factories(m, kind)) for m in MODULES),
            (torch.Tensor, _tensor(kind)),
        ):
            stack.enter_context(replaced(place, changed))
        yield


@contextlib.contextmanager
def replaced(place: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    """Give `place` these attributes for a while; those that it inherits are inherited again afterwards."""
    own = {n: vars(place)[n] for n in changed if n in vars(place)}
    for name, value in changed.items():
        setattr(place, name, value)
    try:
        yield
    finally:
        for name in changed:
            if name in own:
                setattr(place, name, own[name])
            else:
                delattr(place, name)


def _factories(module: Any, kind: str) -> Mapping[str, Callable[..., Any]]:
    """Return the functions of a module that take a device, each taking `kind` for the CPU."""
    said = "device (:class:`torch.device`"
    found = {
        n: f
        for n, f in vars(module).items()
        if isinstance(f, BuiltinFunctionType) and (n in FACTORIES + AUTOCAST or said in (f.__doc__ or ""))
    }
    products = {n: f for n, f in vars(module).items() if n in PRODUCTS}
    return {
        **{n: _here(f, kind, cleared=n.startswith("empty")) for n, f in found.items()},
        **{n: _widened(f) for n, f in products.items()},
    }


def _widened(product: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product that takes `out_dtype`, which torch has on devices alone."""

    @functools.wraps(product)
    def made(*args: Any, **kwargs: Any) -> Any:
        dtypes = [a for a in (*args, kwargs.pop("out_dtype", None)) if isinstance(a, torch.dtype)]
        found = product(*(a for a in args if not isinstance(a, torch.dtype)), **kwargs)
        return found.to(dtypes[0]) if dtypes else found

    return made


def _tensor(kind: str) -> Mapping[str, Any]:
    """Return the attributes of a tensor that tell or change where it is."""
    tensor = torch.Tensor
    made: dict[str, Any] = {n: _here(getattr(tensor, n), kind, cleared=n.startswith("new_empty")) for n in METHODS}
    plain = torch._C.TensorBase.device.__get__  # a slot's own getter
    there = _device(kind)

    def device(self: torch.Tensor) -> torch.device:
        found: torch.device = plain(self)
        return there if found.type == "cpu" else found

    moved = made["to"]
    made["device"] = property(device)
    made["to"] = lambda self, *args, **kwargs: moved(self, *("cpu" if type(a) is int else a for a in args), **kwargs)
    made[f"is_{kind}"] = property(lambda self: plain(self).type == "cpu")
    made["is_cpu"] = property(lambda _: False)
    made["get_device"] = lambda self: 0 if plain(self).type == "cpu" else -1
    made[kind] = lambda self, *_, **__: self
    made["pin_memory"] = lambda self, *_: self
    made["record_stream"] = lambda *_: None
    wrapper = torch.Tensor._make_wrapper_subclass
    made["_make_wrapper_subclass"] = staticmethod(_here(wrapper, kind))
    return made


def _device(kind: str) -> torch.device:
    """Return the first device of a kind; a torch without the vendor's plug-in has another name for it."""
    try:
        return torch.device(kind, 0)
    except RuntimeError:
        return torch.device("privateuseone", 0)


def _here(function: Callable[..., Any], kind: str, cleared: bool = False) -> Callable[..., Any]:
    """Return `function` with `kind`, wherever it is given as a device, taken for the CPU."""
    kinds = (kind, _device(kind).type)

    def cpu(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type in kinds else value
        return "cpu" if isinstance(value, str) and value.partition(":")[0] == kind else value

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if isinstance(device, int) and not isinstance(device, bool):
            kwargs["device"] = "cpu"
        elif device is not None:
            kwargs["device"] = cpu(device)
        kwargs.pop("pin_memory", None)
        found = function(*(cpu(a) for a in args), **kwargs)
        if cleared and not torch.compiler.is_compiling():  # there it would become a kernel of its own
            found.detach().zero_()
        return found

    return made
