"""Which jitted functions and operators of which files a kernel case runs, by following names from its operator."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portability.kernel import KernelCase


@dataclass
class Reached:
    """Functions of one file, and the names of the cases that run each."""

    module: str
    kernels: dict[str, list[str]] = field(default_factory=dict)  # jitted ones
    operators: dict[str, list[str]] = field(default_factory=dict)  # those that are a case's own

    def cases(self, function: str) -> list[str]:
        """Return the cases that run a function of this file."""
        return self.kernels.get(function) or self.operators.get(function) or []


def reach(cases: Iterable[KernelCase]) -> Mapping[Path, Reached]:
    """Return what the cases run, by file."""
    found: dict[Path, Reached] = {}
    for case in cases:
        for function, jitted in _functions(case.operator):
            if not jitted and function is not case.operator:
                continue
            here = found.setdefault(Path(function.__code__.co_filename).resolve(), Reached(function.__module__))
            table = here.kernels if jitted else here.operators
            table.setdefault(function.__name__, []).append(case.name)
    return found


def _functions(start: Any) -> Iterator[tuple[types.FunctionType, bool]]:
    """Yield every function that can be reached by name from `start`, and whether it is jitted.

    Classes are not entered: an operator names its autograd function, and runs it for gradients alone.
    """
    waiting: list[tuple[Any, bool]] = [(start, False)]
    seen: set[int] = set()
    while waiting:
        thing, jitted = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, types.FunctionType):
            yield thing, jitted
            waiting += [(n, False) for n in _named(thing)]
        elif isinstance(thing, (tuple, list)):
            waiting += [(v, False) for v in thing]
        elif isinstance(thing, dict):
            waiting += [(v, False) for v in thing.values()]
        elif hasattr(thing, "fn"):  # triton's JITFunction, Autotuner and Heuristics
            waiting.append((thing.fn, True))
        elif hasattr(thing, "func"):  # a partial
            waiting += [(v, False) for v in (thing.func, *thing.args, *thing.keywords.values())]


def _named(function: types.FunctionType) -> Iterator[Any]:
    """Yield what a function's code names among the globals of its own package, and what it closes over."""
    package = function.__module__.rpartition(".")[0] or function.__module__
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for value in (function.__globals__.get(name) for name in code.co_names):
            module = getattr(value, "__module__", None) or getattr(getattr(value, "fn", None), "__module__", None) or ""
            if isinstance(value, (dict, tuple, list)) or module.startswith(package):
                yield value
    for cell in function.__closure__ or ():
        yield cell.cell_contents
