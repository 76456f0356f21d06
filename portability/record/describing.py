"""One launch as it is described once: the kernel and where it is from, its arguments, and what Triton made of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from portability.checks.collect import definition
from portability.launch import describe
from portability.record.arguments import encode, name_storages
from portability.record.model import Call

LOCAL = "<locals>"  # in the qualified name of what is defined within a function
ADDED = ("instrumentation_mode", "fpsan_homomorphic_casts")  # options that `JITFunction.run` adds by itself
ERROR_LETTERS = 2000


def call(kernel: Any, given: Mapping[str, Any], options: Mapping[str, Any], made_from: Any, **more: Any) -> Call:
    """Return the record of a launch of `kernel` (a `JITFunction`) with `given` arguments.

    `made_from` is what was compiled (an `ASTSource`), `None` where nothing was; `more` are further fields.
    """
    launch = describe(kernel, options, "")
    compiled: dict[str, Any] = {}
    if made_from is not None:
        compiled = {
            "signature": {n: str(t) for n, t in made_from.signature.items()},
            "constants": _by_name(kernel, made_from.constants),
            "attributes": _by_name(kernel, made_from.attrs),
        }
    arguments = {n: encode(v) for n, v in given.items()}
    name_storages(arguments)
    return Call(
        kernel=launch.kernel,
        module=kernel.fn.__module__,
        file=os.path.abspath(launch.file),
        line=definition(launch),
        digest=digest(kernel),
        arguments=arguments,
        options={n: encode(v) for n, v in options.items()},
        **{**compiled, **_beside(kernel, launch.file), **more},
    )


def named(source: Any, args: Sequence[Any]) -> dict[str, Any]:
    """Return a launch's arguments by name. A compiled kernel may be launched with those alone that are no constants."""
    names = source.fn.arg_names
    if len(args) == len(names):
        return dict(zip(names, args, strict=True))
    constants = {names[path[0]]: v for path, v in source.constants.items() if len(path) == 1}
    others = [n for n in names if n not in constants]
    return {**dict(zip(others, args, strict=False)), **constants}


def options(kernel: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were written at a launch."""
    known = {*kernel.arg_names, *ADDED}
    return {n: v for n, v in kwargs.items() if n not in known and (n != "debug" or v)}


def specialised(value: Any) -> str:
    """Return an argument as far as Triton's binder tells it from others."""
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return f"{value.dtype}{'' if value.data_ptr() % 16 else '16'}"
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__ if isinstance(value, float) or callable(value) else str(value)
    return "1" if value == 1 else f"i{'64' if abs(value) >= 2**31 else '32'}{'' if value % 16 else '16'}"


def digest(kernel: Any) -> str:
    """Return what tells whether a kernel's source is still the one that was recorded."""
    return hashlib.sha256(kernel.src.encode()).hexdigest()[:16]


def said(error: BaseException) -> str:
    """Return an exception in words."""
    return f"{type(error).__name__}: {error}"[:ERROR_LETTERS]


def versions() -> dict[str, str]:
    """Return the versions that a recording depends on."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "triton"):
        if name in sys.modules:
            found[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    return found


def _by_name(kernel: Any, values: Mapping[Any, Any]) -> dict[str, str]:
    names = kernel.arg_names
    return {names[k[0]] if len(k) == 1 else str(k): str(v) for k, v in values.items() if v != []}


def _beside(kernel: Any, file: str) -> dict[str, Any]:
    """Return what makes a kernel again that cannot be imported by its module's name."""
    if LOCAL in kernel.fn.__qualname__:
        return _local(kernel)
    module = kernel.fn.__module__
    if "." in module or module == "__main__" or _importable(module, file):
        return {}
    with contextlib.suppress(OSError):  # the file is gone already: then it cannot be made again, and that is said
        text = Path(file).read_text(encoding="utf-8")
        return {"origin": "generated", "source": text, "package": calling_package(file)}
    return {}


def _importable(module: str, file: str) -> bool:
    where = Path(file).resolve()
    return any(where == Path(p).resolve() / f"{module}.py" for p in sys.path)


def calling_package(file: str) -> str:
    """Return the package that had a module written and launches its kernels: the innermost on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("portability", "triton", "torch", "__main__", "") and frame.f_code.co_filename != file:
            return package
        frame = frame.f_back  # type: ignore[assignment]  # None where the stack ends
    return ""


def _local(kernel: Any) -> dict[str, Any]:
    """Return what makes a kernel again that was defined within a function, and that no module holds."""
    cells = dict(zip(kernel.fn.__code__.co_freevars, kernel.fn.__closure__ or (), strict=True))
    jit = {
        n: list(v) for n in ("do_not_specialize", "do_not_specialize_on_alignment") if (v := getattr(kernel, n, None))
    }
    return {"source": kernel.src, "closure": {n: encode(c.cell_contents) for n, c in cells.items()}, "jit": jit}
