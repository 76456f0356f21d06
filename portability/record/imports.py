"""Something to do as soon as a module is imported, and not to import it for that."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def on_import(name: str, then: Callable[[ModuleType], None]) -> Iterator[None]:
    """Call `then` with module `name` once it is there: now, or when it is imported within this context."""
    if name in sys.modules:
        then(sys.modules[name])
        yield
        return
    finder = _Finder(name, then)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module as it would be found, with a loader that reports."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self.name, self.then = name, then
        self._busy = False

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that the other finders have."""
        if name != self.name or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is not None and spec.loader is not None:
            self._report(spec.loader)
        return spec

    def _report(self, loader: Any) -> None:
        plain = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            plain(module)
            self.then(module)

        loader.exec_module = exec_module
