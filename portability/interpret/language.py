"""`triton.language` while a kernel runs: builtins bound to the checked front end, and put back afterwards.

Outside a launch the language is as Triton made it, so that the same process compiles before and after.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl
import triton.language.extra
from triton.language.extra import libdevice

from portability.interpret.blocks import plain
from portability.interpret.builder import CheckedBuilder
from portability.interpret.hints import Hints
from portability.interpret.internals import JITFunction, TensorHandle, TritonSemantic, is_builtin
from portability.interpret.libdevice import emulated
from portability.interpret.rewrite import rewrite
from portability.interpret.runtime import Runtime, static_range
from portability.interpret.scan import Scanner

_MISSING = object()


class Word(str):
    """A string that is also a constant: up to Triton 3.7 `dot_scaled` reads the value of one."""

    @property
    def value(self) -> str:
        """The string itself."""
        return str(self)


class Semantic(TritonSemantic):  # type: ignore[misc]
    """Triton's front end, where it asks for what only a driver or the code generator could give."""

    def dot_scaled(
        self, lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, *rest: Any
    ) -> Any:
        """As the front end's, with formats that are strings and constants at once."""
        lhs_format, rhs_format = (Word(plain(f)) for f in (lhs_format, rhs_format))
        return super().dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, *rest)

    def device_assert(self, cond: Any, msg: str, mask: Any) -> None:
        """Also look where compilers leave the assertion out: unless a launch is for debugging."""
        if self.builder.options.debug:
            super().device_assert(cond, msg, mask)
            return
        lanes = ~cond.handle.data.astype(bool)
        if mask is not None:
            lanes = lanes & mask.handle.data.astype(bool)
        message = f"an assertion does not hold ({msg or 'no message'}); without debug=True no target looks"
        self.builder.warn("false-assertion", lanes if lanes.any() else None, message, cond.handle)

    def _has_native_tma(self) -> bool:
        return True  # 16-bit minima and maxima through a descriptor are computed, whatever a target has


class Language:
    """The language bound to one builder. `functions` are rewritten once a session."""

    def __init__(self, builder: CheckedBuilder) -> None:
        self.builder = builder
        self.semantic = Semantic(builder)
        self.runtime = builder.runtime = Runtime(self.semantic, builder.report, builder.access)
        self.hints = Hints(builder.warn)
        self.reducer = Scanner(builder, self.semantic, self.function)
        self._functions: dict[int, tuple[Any, Callable[..., Any]]] = {}  # by id: hashing would hash the source
        self._bound: dict[int, tuple[Any, Callable[..., Any]]] = {}
        self._changes: list[tuple[Any, str, Any, Any]] | None = None  # object, name, new, original
        self._depth = 0

    def function(self, jit: Any) -> Callable[..., Any]:
        """Return the Python function of a JITFunction."""
        found = self._functions.get(id(jit))
        if found is None:
            found = self._functions[id(jit)] = (jit, rewrite(jit, self.runtime, self.substitute))
        return found[1]

    def substitute(self, value: Any) -> Any:
        """Return what stands for a global that a kernel reads by name: a builtin is bound, a constant is bare."""
        if isinstance(value, tl.constexpr):
            return value.value
        if inspect.isfunction(value):
            if value.__module__ == libdevice.__name__:
                return emulated(value.__name__, self.bind)
            if is_builtin(value):
                return self._replacements().get(id(value), self.bind(value))
        return value

    def bind(self, builtin: Callable[..., Any]) -> Callable[..., Any]:
        """Return a builtin that is given the front end, or one that does not ask for it."""
        if not _asks_for_front_end(builtin):
            return builtin
        found = self._bound.get(id(builtin))
        if found is None:
            inner = getattr(builtin, "__wrapped__", builtin)  # without the check that the front end is given
            semantic = self.semantic

            def bound(*args: Any, **kwargs: Any) -> Any:
                kwargs["_semantic"] = semantic
                return inner(*args, **kwargs)

            found = self._bound[id(builtin)] = (builtin, bound)
        return found[1]

    @property
    def running(self) -> bool:
        """Whether a kernel is being run."""
        return self._depth > 0

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Bind the language; nested uses do nothing."""
        if self._depth == 0:
            if self._changes is None:
                self._changes = [(o, n, new, vars(o).get(n, _MISSING)) for o, n, new in self._replaced()]
            for target, name, new, _ in self._changes:
                setattr(target, name, new)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._restore()

    def _restore(self) -> None:
        for target, name, _, original in reversed(self._changes or []):
            if original is _MISSING:
                delattr(target, name)
            else:
                setattr(target, name, original)

    def _replacements(self) -> dict[int, Any]:
        """Return what stands for a builtin that is not merely bound, by the builtin's id."""
        return {id(original): new for _, _, new, original in self._changes or [] if is_builtin(original)}

    def _replaced(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield every attribute of the language that a running kernel needs otherwise, later ones on top."""
        for holder, name, member in language_builtins():
            yield holder, name, self.bind(member)
        for name, member in list(vars(tl.tensor).items()):
            if isinstance(member, JITFunction):  # x.sum(): a class does not bind a JITFunction to its instance
                yield tl.tensor, name, self._method(member)
        for name, member in list(vars(libdevice).items()):
            if inspect.isfunction(member) and member.__module__ == libdevice.__name__:
                yield libdevice, name, emulated(name, self.bind)
        yield from self._scalars()
        for module in (tl, tl.core):
            for name, new in self._functions_of_compiler().items():
                if hasattr(module, name):
                    yield module, name, new
        for name in ("reduce", "associative_scan"):
            yield tl.tensor, name, _method(self._functions_of_compiler()[name])

    def _method(self, jit: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.function(jit)(*args, **kwargs)  # noqa: PLW0108 - rewritten on use

    def _scalars(self) -> Iterator[tuple[Any, str, Any]]:
        """What Python asks of a tensor or type, and the compiler answers by other means."""
        yield tl.tensor, "__index__", lambda this: int(this.handle.data.item())
        # The front end asks `if other` to know whether it was given; a kernel's conditions go through the runtime.
        yield tl.tensor, "__bool__", lambda _: True
        yield tl.tensor, "__repr__", lambda this: repr(this.handle.data)
        yield tl.tensor, "__str__", lambda this: str(this.handle.data)
        yield tl.tensor, "T", property(_transposed)
        yield tl.dtype, "to_ir", lambda this, _: this  # a type is its own representation
        if hasattr(tl, "condition"):
            yield tl.condition, "__bool__", lambda this: self.runtime.condition(this.condition)

    def _functions_of_compiler(self) -> dict[str, Any]:
        """What the compiler's code generator handles itself, or gives regions to."""
        return {
            "range": self.runtime.range,
            "static_range": static_range,
            "static_assert": _static_assert,
            "static_print": builtins.print,
            "reduce": self.reducer.reduce,
            "associative_scan": self.reducer.scan,
            "map_elementwise": self.reducer.map,
            "multiple_of": self.hints.multiple_of,
            "max_contiguous": self.hints.max_contiguous,
            "max_constancy": self.hints.max_constancy,
        }


def language_modules() -> list[ModuleType]:
    """Return the modules of `triton.language`, the vendors' extras among them.

    An extra may be there twice, once in `sys.modules` and once as an attribute of its parent.
    """
    for found in pkgutil.walk_packages(triton.language.extra.__path__, "triton.language.extra."):
        if found.name not in sys.modules:
            with contextlib.suppress(ImportError):  # a vendor's extra for another Python
                importlib.import_module(found.name)
    modules = [m for name, m in sorted(sys.modules.items()) if m and _of_language(name)]
    modules += [v for m in modules for v in vars(m).values() if inspect.ismodule(v) and _of_language(v.__name__)]
    return list({id(m): m for m in modules}.values())


@cache
def language_builtins() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Return every builtin of the language, with the module or class that holds it; the same for all sessions."""
    return [
        (holder, name, member)
        for holder in (*language_modules(), *_classes())
        for name, member in vars(holder).items()
        if inspect.isfunction(member) and is_builtin(member) and _asks_for_front_end(member)
    ]


@cache
def _asks_for_front_end(builtin: Callable[..., Any]) -> bool:
    return "_semantic" in inspect.signature(builtin).parameters


def _of_language(name: str) -> bool:
    return (name + ".").startswith("triton.language.")


def _classes() -> list[type]:
    return [c for c in vars(tl.core).values() if inspect.isclass(c) and c.__module__ == tl.core.__name__]


def _method(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, which a class binds to its instances, unlike a bound method."""
    return lambda *args, **kwargs: call(*args, **kwargs)  # noqa: PLW0108


def _static_assert(condition: Any, message: Any = "", **_: Any) -> None:
    if not condition:
        raise AssertionError(f"static_assert failed: {message}")


def _transposed(tensor: Any) -> Any:
    shape = [*tensor.type.shape[:-2], tensor.type.shape[-1], tensor.type.shape[-2]]
    handle = TensorHandle(np.swapaxes(tensor.handle.data, -1, -2), tensor.handle.dtype)
    return tl.tensor(handle, tl.block_type(tensor.dtype, shape))
