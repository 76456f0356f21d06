"""A recorded kernel again, in another process: its module is imported, and the jitted function found in it.

By the module's name where it can be imported and its source is the one that was recorded; else from the file. Python
looks in the process's own paths first, then in those of the recorded program.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import linecache
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from portability.record.model import Call

DEPTH = 64  # how far decorators wrap each other at most; some objects have any attribute, without end


class NotRebuiltError(RuntimeError):
    """A recorded kernel cannot be had again; the message says why."""


def extend_paths(paths: Sequence[str]) -> None:
    """Let modules be imported as the recorded program imports them."""
    sys.path += [p for p in paths if p not in sys.path and Path(p).exists()]


def rebuild(call: Call) -> Any:
    """Return the jitted function of a recorded launch. Raises `NotRebuiltError`."""
    if call.origin != "written":
        return _generated(call)
    whys: list[str] = []
    for module in _modules(call, whys):
        found = _local(module, call) if call.source else find(module, call)
        if found is not None:
            return found
        whys.append(f"no kernel {call.kernel} in {module.__name__}")
    raise NotRebuiltError(f"not rebuilt: {'; '.join(dict.fromkeys(whys))}")


def find(module: ModuleType, call: Call) -> Any:
    """Return the module's jitted function of that qualified name and line, `None` where there is none.

    A decorator may have hidden it, and several kernels may be defined under one name: the module's values are searched.
    """
    alike = [k for k in _kernels(module) if k.fn.__qualname__ == call.kernel and k.fn.__module__ == module.__name__]
    same = [k for k in alike if _digest(k) == call.digest]
    return next(iter(same or alike), None)


def _local(module: ModuleType, call: Call) -> Any:
    """Make a kernel that was defined within a function, in its module and with what it took from around it."""
    import triton

    from portability.record.arguments import UnknownArgumentError, decode

    name = call.kernel.rpartition(".")[2]
    try:
        taken = {n: decode(n, v) for n, v in call.closure.items()}
    except UnknownArgumentError as error:
        raise NotRebuiltError(f"not rebuilt: it was defined within a function, and {error}") from None
    text = "\n" * (call.line - 1) + call.source  # on its own lines, so that errors name them
    linecache.checkcache(call.file)
    if not linecache.getlines(call.file):
        linecache.cache[call.file] = (len(text), None, text.splitlines(keepends=True), call.file)
    scope = {**vars(module), **taken}
    exec(compile(text, call.file, "exec", dont_inherit=True), scope)
    function = scope[name]
    function.__qualname__, function.__module__ = call.kernel, module.__name__
    return triton.jit(function, **call.jit)


def _generated(call: Call) -> Any:
    """Import a module that was written while the program ran, from the recording."""
    from portability.record.inductor import kept_driver

    name = f"recorded_{hashlib.sha256(call.source.encode()).hexdigest()[:16]}"
    module = sys.modules.get(name)
    if module is None:
        path = Path(tempfile.mkdtemp()) / f"{name}.py"
        path.write_text(call.source, encoding="utf-8")
        try:
            with kept_driver():
                module = _imported(name, path)
        except Exception as error:
            raise NotRebuiltError(f"not rebuilt: {type(error).__name__}: {error}") from error
    found = find(module, call)
    if found is None:
        raise NotRebuiltError(f"not rebuilt: no kernel {call.kernel} in the generated module")
    return found


def _modules(call: Call, whys: list[str]) -> Iterator[ModuleType]:
    if call.module != "__main__":
        try:
            yield importlib.import_module(call.module)
        except Exception as error:  # a module may raise anything while it is imported
            whys.append(f"import {call.module}: {type(error).__name__}: {error}")
    if not Path(call.file).is_file():
        whys.append(f"{Path(call.file).name} is not there")
        return
    try:
        yield _from_file(call)
    except Exception as error:
        whys.append(f"{Path(call.file).name}: {type(error).__name__}: {error}")


def _from_file(call: Call) -> ModuleType:
    name = f"recorded_{Path(call.file).stem}" if call.module == "__main__" else call.module
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == call.file:
        return known
    return _imported(name, Path(call.file))


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:  # Ctrl-C too: half a module must not be found by its name
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def _kernels(module: ModuleType) -> Iterator[Any]:
    """Yield the jitted functions that a module, its classes and its containers hold."""
    values = list(vars(module).values())
    for value in list(values):
        if isinstance(value, type) and value.__module__ == module.__name__:
            values += vars(value).values()
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, (list, tuple)):
            values += value
    seen: set[int] = set()
    for value in values:
        found = unwrapped(value)
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            yield found


def unwrapped(value: Any) -> Any:
    """Return the jitted function within its decorators, `None` where there is none."""
    from triton.runtime.jit import JITFunction

    for _ in range(DEPTH):
        if isinstance(value, JITFunction):
            return value
        value = getattr(value, "__wrapped__", None) or getattr(value, "fn", None) or getattr(value, "jit_fn", None)
        if value is None:
            return None
    return None  # nothing that ends


def _digest(kernel: Any) -> str:
    from portability.record.describing import digest

    return digest(kernel)
