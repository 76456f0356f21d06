"""Loose files: a module that launches kernels and says what should come of it, without a kernel case.

    run(dev)    launches on tensors that it makes on torch device `dev`; returns a tensor, or several
    ref()       what `run` should return, by torch on the CPU; without it values are not judged
    data()      the inputs of both, where they share them
    SPEC        one kernel to compile without the wrapper, or `SPECS`, several by name:
                {"fn": name, "sig": {argument: "*fp32"}, "const": {…}, "div16": [arguments], "opts": {…}}
    CASE        anything that is known of it; "asm" and "ttir" are patterns to look for in what the compilers make

A module that exports kernel cases (`CASE` or `CASES` of `portability.kernel`) is taken as well: one sample of each.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import linecache
import random
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from portability.kernel import KernelCase, cases_of
from portability.paths import package_of

SEED = 0
TRITON = re.compile(r"\b(triton|tl)\.\w")  # as a file calls it


class UnreadableError(ValueError):
    """A file cannot be checked; the message says why, and `line` where, if that is known.

    `of_triton` says that it asks Triton for what the installed release does not have; `at_import` that it raised while
    it was imported.
    """

    line = ""
    of_triton = False
    at_import = False


@dataclass(frozen=True)
class Spec:
    """One kernel to compile without its wrapper. Types are Triton's: "*fp32", "i32", "fp32"."""

    name: str
    kernel: str  # its name in the module
    signature: Mapping[str, str]
    constants: Mapping[str, Any] = field(default_factory=dict)
    divisible: Sequence[str] = ()  # arguments that are multiples of 16
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Loose:
    """An imported file, and what of it can be called."""

    path: Path
    module: ModuleType
    run: Callable[[str], Any] | None = None
    reference: Callable[[], Any] | None = None
    specs: Sequence[Spec] = ()
    cases: Sequence[KernelCase] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)  # "asm" and "ttir", where the file gives them
    held: Mapping[str, torch.Tensor] = field(default_factory=dict)  # copies of the tensors among its globals

    @property
    def name(self) -> str:
        """The file's stem, as the name of a kernel case."""
        return re.sub(r"[^A-Za-z0-9_.]", "_", self.path.stem)

    @property
    def takes_device(self) -> bool:
        """Whether `run` is told its device."""
        return self.run is not None and bool(inspect.signature(self.run).parameters)

    def restore(self) -> None:
        """Put back what a call may have changed: the seeds, and tensors among the module's globals."""
        torch.manual_seed(SEED)
        random.seed(SEED)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(SEED)
        for name, tensor in self.held.items():
            here = getattr(self.module, name, None)
            if isinstance(here, torch.Tensor) and here.shape == tensor.shape:
                here.copy_(tensor)

    def tuners(self) -> Mapping[str, Any]:
        """Return the autotuned kernels among the module's globals, by name, also where heuristics lie around them."""
        inner = {n: _within(v) for n, v in vars(self.module).items()}
        return {n: v for n, v in inner.items() if hasattr(v, "configs") and hasattr(v, "prune_configs")}


def _within(value: Any) -> Any:
    """Return the autotuner within what decorates it, or what is innermost."""
    return value if hasattr(value, "configs") or not hasattr(value, "fn") else _within(value.fn)


def load(path: Path) -> Loose:
    """Import a file and say what of it can be called. Raises `UnreadableError` where that is nothing."""
    module = _imported(path)
    cases = _cases(module)
    run, reference = getattr(module, "run", None), getattr(module, "ref", None)
    specs = _specs(module)
    if not (callable(run) or specs or cases):
        raise UnreadableError("it defines neither run(dev), nor SPEC or SPECS, nor a kernel case")
    if cases:
        return Loose(path, module, cases=cases)
    known = getattr(module, "CASE", None)
    found = {k: str(known[k]) for k in ("asm", "ttir") if isinstance(known, Mapping) and known.get(k)}
    for kind, pattern in found.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise UnreadableError(f"CASE[{kind!r}] is no regular expression: {error}") from None
    held = {n: v.clone() for n, v in vars(module).items() if isinstance(v, torch.Tensor)}
    return Loose(
        path, module, run if callable(run) else None, reference if callable(reference) else None, specs, (), found, held
    )


def tensors_of(made: Any) -> tuple[torch.Tensor, ...]:
    """Return the tensors in what `run` or `ref` returned, in order; numbers become tensors. Raises `TypeError`."""
    if isinstance(made, torch.Tensor):
        return (made,)
    if made is None:
        return ()
    if isinstance(made, Mapping):
        made = list(made.values())
    if isinstance(made, (list, tuple)):
        return tuple(t for item in made for t in tensors_of(item))
    if isinstance(made, (bool, int, float)):
        return (torch.tensor(made),)
    raise TypeError(f"tensors are needed, not {type(made).__name__}")


def line_in(error: BaseException, path: Path) -> str:
    """Return the innermost line of the file in a traceback, "" where there is none."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
    return f"{path}:{frames[-1].lineno}" if frames else ""


def _imported(path: Path) -> ModuleType:
    """Import by path: as part of its package where it lies in one, else under its own name."""
    if not path.is_file():
        raise UnreadableError("no such file")
    root, name = package_of(path)
    sys.path.insert(0, str(root))
    try:
        if "." in name:
            return importlib.import_module(name)
        found = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[found.name] = module
        found.loader.exec_module(module)
    except BaseException as error:  # a module may raise anything while it is imported, SystemExit too
        if isinstance(error, KeyboardInterrupt):
            raise
        unreadable = UnreadableError(f"it cannot be imported: {type(error).__name__}: {error}")
        unreadable.line = line_in(error, path)
        unreadable.at_import = True
        unreadable.of_triton = _asks_triton(error, unreadable.line)
        raise unreadable from error
    finally:
        sys.path.remove(str(root))
    return module


def _asks_triton(error: BaseException, line: str) -> bool:
    """Whether a module, a name or an argument of Triton is what an import failed for."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] == "triton"
    if isinstance(error, AttributeError):
        holder = error.obj if isinstance(error.obj, (ModuleType, type)) else type(error.obj)
        return getattr(holder, "__module__", holder.__name__).partition(".")[0] == "triton"
    path, _, number = line.rpartition(":")
    return isinstance(error, TypeError) and bool(TRITON.search(linecache.getline(path, int(number or 0))))


def _cases(module: ModuleType) -> Sequence[KernelCase]:
    known = [getattr(module, "CASE", None), *(getattr(module, "CASES", None) or [])]
    return cases_of(module) if any(isinstance(k, KernelCase) for k in known) else ()


def _specs(module: ModuleType) -> list[Spec]:
    given: dict[str, Any] = dict(getattr(module, "SPECS", None) or {})
    if getattr(module, "SPEC", None):
        given["SPEC"] = module.SPEC
    return [_spec(module, str(name), entry) for name, entry in given.items()]


def _spec(module: ModuleType, name: str, entry: Any) -> Spec:
    try:
        kernel, signature = str(entry["fn"]), dict(entry["sig"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"spec {name!r} needs 'fn' and 'sig': {error}") from None
    if not hasattr(module, kernel):
        raise UnreadableError(f"spec {name!r}: there is no kernel {kernel!r}")
    more = {k: entry.get(k) or {} for k in ("const", "opts")}
    return Spec(name, kernel, signature, more["const"], tuple(entry.get("div16") or ()), more["opts"])
