"""Kernel cases with a mutant in the place of one of their modules, in a runner."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType

from portability.kernel import KernelCase, cases_of


@cache
def mutated(module: str, file: str, of_case: str) -> Mapping[str, KernelCase]:
    """Return the cases of module `of_case`, imported anew with `file` as the source of `module`."""
    package = module.rpartition(".")[0]
    with _anew(package):
        _execute(module, file)
        return {c.name: c for c in cases_of(importlib.import_module(of_case))}


@contextmanager
def _anew(package: str) -> Iterator[None]:
    """Forget the modules of a package until the end of the context, and then those that were imported in it."""
    inside = f"{package}." if package else ""
    before = {n: m for n, m in sys.modules.items() if inside and n.startswith(inside)}
    for name in before:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in [n for n in sys.modules if inside and n.startswith(inside)]:
            del sys.modules[name]
        sys.modules.update(before)
        parent = sys.modules.get(package)
        for name, module in before.items():
            if name.count(".") == package.count(".") + 1 and parent is not None:
                setattr(parent, name.rpartition(".")[2], module)


def _execute(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is not None:
        setattr(parent, name.rpartition(".")[2], made)
    spec.loader.exec_module(made)
    return made
