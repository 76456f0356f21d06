"""What an operator does, as straight lines: torch's operations between launches, and the launches, with what they take.

Python's own control flow is gone: what is recorded is what happened for one input. Operations whose results nobody
needs are left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from portability.reproducer.literals import UnwritableError, plain
from portability.reproducer.source import Sources

aten = torch.ops.aten
UNWRITTEN = {aten.empty.memory_format, aten.empty_strided.default, aten.empty_like.default, aten.new_empty.default}
UNWRITTEN |= {aten.new_empty_strided.default}
# What torch itself calls by the same name with the same arguments.
PLAIN = {
    "empty",
    "empty_like",
    "empty_strided",
    "zeros",
    "zeros_like",
    "ones",
    "ones_like",
    "full",
    "full_like",
    "clone",
}
MAKING = {"empty", "empty_strided", "zeros", "ones", "full", "arange"}  # from nothing: they are told a device
ELSEWHERE = ("device", "layout", "pin_memory", "memory_format")  # arguments that say nothing on one device


@dataclass
class Step:
    """One operation of torch, or one launch."""

    target: Any  # the operation, or the jitted function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    made: Sequence[torch.Tensor] = ()
    grid: tuple[int, ...] | None = None  # of a launch

    @property
    def writes(self) -> bool:
        """Whether it changes a tensor that it is given."""
        return self.grid is not None or bool(self.target._schema.is_mutable)


@dataclass
class Trace:
    """Everything that happened, and the tensors in it by name."""

    steps: list[Step] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    held: list[torch.Tensor] = field(default_factory=list)  # keeps each tensor, and so its id its own

    def name(self, tensor: torch.Tensor, wanted: str = "") -> str:
        """Return a tensor's name, a new one where it has none."""
        if id(tensor) not in self.names:
            self.names[id(tensor)] = wanted or f"t{len(self.names)}"
            self.held.append(tensor)
        return self.names[id(tensor)]

    def needed(self, outputs: Sequence[torch.Tensor]) -> list[Step]:
        """Return the steps that launches and `outputs` depend on. By name: a tensor and its alias have one."""
        wanted = {self.name(o) for o in outputs}
        kept = []
        for step in reversed(self.steps):
            if step.writes or wanted & {self.name(t) for t in step.made}:
                kept.append(step)
                wanted |= {self.names[id(t)] for t in _tensors((step.args, step.kwargs)) if id(t) in self.names}
        return kept[::-1]


class _Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own class is untyped
    def __init__(self, trace: Trace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace, self.paused = trace, False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first call imports the whole of torch's compiler

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = _tensors(made)
        if func is aten.detach.default and id(args[0]) in self.trace.names:  # the same memory under the same name
            self.trace.names[id(made)] = self.trace.name(args[0])
            self.trace.held.append(made)
        elif not self.paused and tensors:
            new = [t for t in tensors if id(t) not in self.trace.names]
            self.trace.steps.append(Step(func, args, kwargs or {}, tensors))
            for t in new:
                self.trace.name(t)
        return made


@contextlib.contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Record into `trace` what happens; within a session, whose launches are recorded before they are made."""
    from triton.runtime.jit import JITFunction

    tracer, inner = _Tracer(trace), JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        bound = self.signature.bind_partial(*args, **{k: v for k, v in kwargs.items() if k in self.arg_names})
        bound.apply_defaults()
        shape = tuple(int(n) for n in (grid(dict(bound.arguments)) if callable(grid) else grid))
        trace.steps.append(Step(self, args, dict(kwargs), grid=shape))
        tracer.paused = True
        try:
            return inner(self, *args, grid=grid, warmup=warmup, **kwargs)
        finally:
            tracer.paused = False

    JITFunction.run = run
    try:
        with tracer:
            yield
    finally:
        JITFunction.run = inner


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in a value, those that a descriptor points to too."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in _tensors(v)]
    return [value.base] if isinstance(getattr(value, "base", None), torch.Tensor) else []


# ------------------------------------------------------------------------------------------------------- as text


class Lines:
    """A trace as Python, with the names of `sources`. `unwritten` wraps an allocation that holds whatever was there."""

    def __init__(self, trace: Trace, sources: Sources, unwritten: Callable[[str], str]) -> None:
        self.trace, self.sources, self.unwritten = trace, sources, unwritten

    def text(self, outputs: Sequence[torch.Tensor]) -> list[str]:
        """Return the lines that make `outputs`, without the line that returns them."""
        known = {name for name in self.trace.names.values() if name.startswith("x")}  # the inputs
        lines = []
        for step in self.trace.needed(outputs):
            if step.grid is not None:
                lines.append(self._launch(step))
                continue
            names = [self.trace.name(t) for t in step.made]
            call = self._operation(step)
            lines.append(call if known >= set(names) else f"{', '.join(names)} = {call}")
            known |= set(names)
        return lines

    def _launch(self, step: Step) -> str:
        kernel = self.sources.name_of(step.target)
        given = [self.value(a) for a in step.args]
        given += [f"{k}={self.value(v)}" for k, v in step.kwargs.items() if k not in ("warmup",)]
        return f"{kernel}[{plain(step.grid)}]({', '.join(given)})"

    def _operation(self, step: Step) -> str:
        given = [self.value(a) for a in step.args]
        given += [
            f"{k}={self.value(v)}" for k, v in step.kwargs.items() if k not in ELSEWHERE or "_to" in str(step.target)
        ]
        name = str(step.target).split(".")[1]
        given += ["device=DEVICE"] if name in MAKING else []
        call = f"{f'torch.{name}' if name in PLAIN else f'torch.ops.{step.target}'}({', '.join(given)})"
        return self.unwritten(call) if step.target in UNWRITTEN else call

    def value(self, value: Any) -> str:
        """Return an argument as Python. Raises `UnwritableError`."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self.trace.names:
                raise UnwritableError("a launch takes a tensor that is none of the operator's inputs, nor made in it")
            return self.trace.name(value)
        if type(value).__name__ == "TensorDescriptor":
            made = self.sources.name_of(type(value), "TensorDescriptor")
            parts = (value.base, list(value.shape), list(value.strides), list(value.block_shape))
            return f"{made}({', '.join(self.value(p) for p in parts)})"
        if isinstance(value, (list, tuple)) and _tensors(value):
            inner = ", ".join(self.value(v) for v in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
        return self.sources.expression(value)
