"""What rewritten kernels call: assignment, conditions, ranges, and the watch on `while` loops."""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl

from portability.interpret.access import Access
from portability.interpret.internals import TensorHandle
from portability.interpret.report import Report, SpinTimeout, written

INT32 = (-(2**31), 2**31)


class Runtime:
    """The calls that the rewriter puts into a kernel.

    `deadline` is when the running program has taken too long, in seconds of `time.monotonic`. `earlier` runs a program
    that comes before the running one and has not been run, and says whether there was one.
    """

    def __init__(self, semantic: Any, report: Report, access: Access) -> None:
        self.semantic = semantic
        self.report = report
        self.access = access
        self.deadline = float("inf")
        self.seconds = 0.0
        self.earlier: Callable[[], bool] = bool

    def assign(self, value: Any) -> Any:
        """A number that is assigned becomes a tensor, as in the compiler; anything else stays."""
        if isinstance(value, tl.constexpr):
            value = value.value
        return self.semantic.to_tensor(value) if type(value) in (int, float, bool) else value

    def constant(self, value: Any) -> Any:
        """The bare value of a constant."""
        return value.value if isinstance(value, tl.constexpr) else value

    def condition(self, value: Any) -> bool:
        """The condition of a branch or loop: the compiler takes scalars and constants."""
        if not isinstance(value, tl.tensor):
            return bool(value)
        data = value.handle.data
        if data.size > 1:
            raise TypeError(f"a block of shape {list(data.shape)} is no condition: use tl.where or a reduction")
        return bool(data.item())

    def both(self, left: Any, right: Callable[[], Any]) -> Any:
        """`left and right`: lane by lane for tensors, of which both sides are computed."""
        if not isinstance(left, tl.tensor):
            return left and right()
        other = right()
        if isinstance(other, tl.tensor):
            return left.logical_and(other)
        return left if other else other  # a constant decides, or has no say

    def either(self, left: Any, right: Callable[[], Any]) -> Any:
        """`left or right`, likewise."""
        if not isinstance(left, tl.tensor):
            return left or right()
        other = right()
        if isinstance(other, tl.tensor):
            return left.logical_or(other)
        return other if other else left

    def no(self, value: Any) -> Any:
        """`not value`, lane by lane for a tensor."""
        return value.__not__() if isinstance(value, tl.tensor) else not value

    def chain(self, operands: tuple[Any, ...], pairs: Callable[[], tuple[Any, ...]]) -> Any:
        """`a < b < c`: the conjunction of its pairs; `operands` were evaluated first, once each."""
        result: Any = True
        for pair in pairs():
            result = pair if result is True else self.both(result, lambda pair=pair: pair)  # type: ignore[misc]
        return result

    def min(self, *args: Any) -> Any:
        """Python's min on numbers, `tl.minimum` on tensors."""
        return self._extreme(builtins.min, tl.minimum, args)

    def max(self, *args: Any) -> Any:
        """Python's max on numbers, `tl.maximum` on tensors."""
        return self._extreme(builtins.max, tl.maximum, args)

    def _extreme(self, plain: Callable[..., Any], lanes: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not any(isinstance(a, tl.tensor) for a in args):
            return plain(*args)
        result = args[0]
        for value in args[1:]:
            result = lanes(result, value)
        return result

    def range(self, arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
        """A loop's values as integer tensors, of 32 bits unless a bound has more; options are for compilers."""
        given = _bounds(arg1, arg2, step)
        bounds = [_integer(v) for v in given]
        wide = any(
            v.dtype.primitive_bitwidth == 64 if isinstance(v, tl.tensor) else not INT32[0] <= _integer(v) < INT32[1]
            for v in given
        )
        kind, dtype = (np.int64, tl.int64) if wide else (np.int32, tl.int32)
        for value in builtins.range(*bounds):
            yield tl.tensor(TensorHandle(np.array([value]).astype(kind), dtype), dtype)

    def watch(self) -> Watch:
        """Watch one `while` loop."""
        return Watch(self)

    def give_way(self, what: str) -> None:
        """Let an earlier program run: devices start them in order, so that waiting for one is allowed. Else give up."""
        if not self.earlier():
            report = self.report
            raise SpinTimeout(f"{report.kernel}: program {report.program}: {what}", written(report.place()))


def static_range(arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> builtins.range:
    """The unrolled loop: its values are constants."""
    return builtins.range(*(_integer(v) for v in _bounds(arg1, arg2, step)))


def _bounds(arg1: Any, arg2: Any, step: Any) -> tuple[Any, Any, Any]:
    """Start, stop and step of a range whose arguments have the language's names."""
    step = 1 if step is None else step
    return (0, arg1, step) if arg2 is None else (arg1, arg2, step)


def _integer(value: Any) -> int:
    if isinstance(value, tl.constexpr):
        value = value.value
    return int(value.handle.data.item()) if isinstance(value, tl.tensor) else value.__index__()


class Watch:
    """Notices that a `while` loop will never end: its variables and all memory are as they were some turns ago.

    Nothing else can change them while this program runs alone, so that the turns would repeat for ever. States are
    compared with one kept from a turn that is a power of two (Brent's algorithm), which finds a cycle of any length.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.turns = 0
        self.kept: dict[str, Any] = {}
        self.changes = -1

    def __enter__(self) -> Watch:
        self.runtime.access.watched += 1
        return self

    def __exit__(self, *exception: object) -> None:
        self.runtime.access.watched -= 1

    def turn(self) -> None:
        """Called at the start of each turn. Raises `SpinTimeout` where the loop cannot end or takes too long."""
        self.turns += 1
        runtime = self.runtime
        if time.monotonic() > runtime.deadline:
            runtime.give_way(f"still in a loop after {runtime.seconds:g} s and {self.turns} turns of it")
        state = sys._getframe(1).f_locals
        if self.changes == runtime.access.changes and _same(self.kept, state):
            runtime.give_way(
                "a loop that can never end: its variables and memory stay as they are, and no other program runs"
            )
        if self.turns & (self.turns - 1) == 0:
            self.kept = {name: _copy(value) for name, value in state.items()}
            self.changes = runtime.access.changes


def _copy(value: Any) -> Any:
    return (value.handle.data.shape, value.handle.data.tobytes()) if isinstance(value, tl.tensor) else value


def _same(kept: dict[str, Any], state: dict[str, Any]) -> bool:
    if kept.keys() != state.keys():
        return False
    for name, value in state.items():
        old, new = kept[name], _copy(value)
        if old is not new and not (type(old) is type(new) in (int, float, bool, str, tuple) and _equal(old, new)):
            return False
    return True


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, tuple) and any(isinstance(v, tl.tensor) for v in (*old, *new)):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    return bool(old == new)
