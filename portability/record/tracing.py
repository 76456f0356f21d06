"""What torch's compilers see of a device that is not there: torch.compile's fake tensors, TorchScript's functions.

A fake tensor on a device makes autograd look for that device's guard as soon as a gradient is wanted, and a torch that
was built without it ends the process (`c10::Error: PyTorch is not linked with support for cuda devices`). So fake
tensors lie where the program's own tensors lie, and say, as they do, that they are on the device. What Inductor then
generates is for the device: it asks `Tensor.device`, and `decode_device` for what a graph creates.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from portability.checks.pretend import MODULES, replaced
from portability.record.imports import on_import

NAME = "decode_device"
DECODING = ("torch._inductor.utils", "torch._inductor.lowering", "torch._inductor.fx_passes.post_grad")


@contextlib.contextmanager
def traced_nowhere(kind: str) -> Iterator[None]:
    """Let torch.compile trace for torch's device type `kind` with fake tensors that lie on the CPU."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    cpu, there = torch.device("cpu"), torch.empty(0).device  # as tensors say

    def here(value: Any) -> Any:
        is_there = isinstance(value, torch.device | str) and str(value).partition(":")[0] == kind
        return cpu if is_there else value

    def told(device: torch.device) -> torch.device:
        return there if device.type == "cpu" else device

    plain_new: Any = FakeTensor.__new__
    told_by: Any = FakeTensor.device

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return plain_new(cls, *map(here, args), **{n: here(v) for n, v in kwargs.items()})

    changed = {
        "__new__": staticmethod(new),
        "device": property(lambda self: told(told_by.fget(self)), told_by.fset),
        # Written by what copies a tensor's description (`torch._subclasses.meta_utils`); C++ reads it.
        "fake_device": property(lambda self: vars(self)["_fake_device"], _place(here)),
    }
    answers: tuple[Any, ...] = (torch.is_autocast_enabled, torch.get_autocast_dtype)
    for answer in answers:
        answer._dynamo_marked_constant = True  # as `torch.compiler.assume_constant_result` does
    # Else the trace ends at each `x.to(…)`, since it does not go into what stands for it.
    traced = on_import("torch._dynamo", lambda dynamo: dynamo.allow_in_graph(torch.Tensor.to))
    with decoded(told), replaced(FakeTensor, changed), traced:
        yield


@contextlib.contextmanager
def decoded(told: Callable[[Any], Any]) -> Iterator[None]:
    """Have what Inductor makes of a graph's devices go through `told`, in each module that has the function by name."""
    with contextlib.ExitStack() as stack:

        def change(utils: ModuleType) -> None:
            plain = utils.decode_device
            stack.callback(_put, plain)
            for name in DECODING:
                stack.enter_context(on_import(name, lambda m: setattr(m, NAME, lambda device: told(plain(device)))))

        stack.enter_context(on_import(DECODING[0], change))
        yield


def _put(function: Callable[..., Any]) -> None:
    for name in DECODING:
        if name in sys.modules:
            setattr(sys.modules[name], NAME, function)


@contextlib.contextmanager
def scripted() -> Iterator[None]:
    """Let TorchScript know torch's functions by what stands for them, which it would compile as Python otherwise."""
    from torch.jit import _builtins

    table: Any = _builtins._get_builtin_table
    known = table()  # what a function is to TorchScript, by its id
    standing = [f for m in MODULES for f in vars(m).values() if id(getattr(f, "__wrapped__", None)) in known]
    known.update({id(f): known[id(f.__wrapped__)] for f in standing})
    try:
        yield
    finally:
        for function in standing:
            known.pop(id(function), None)


def _place(here: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    def write(tensor: Any, device: Any) -> None:
        vars(tensor)["_fake_device"] = here(device)

    return write
