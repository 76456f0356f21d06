"""Writes `names.json`: which names each release of Triton has, read from its sources without importing it.

    python -m portability.lint.snapshot [SITE-PACKAGES]...

Each argument is a directory that holds a `triton` package; without one, the Triton of this environment is read.
The newest release is the one whose libdevice functions and launch options are kept.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("names.json")

BACKENDS = {"cuda": ("nvidia", "CUDAOptions"), "hip": ("amd", "HIPOptions")}


def main(argv: Sequence[str]) -> int:
    """Read every Triton given and write the data file."""
    packages = [Path(a) / "triton" for a in argv] or [_installed()]
    DATA.write_text(json.dumps(snapshot(packages), indent=1, sort_keys=True) + "\n")
    return 0


def snapshot(packages: Sequence[Path]) -> dict[str, Any]:
    """Return the data of `packages`, each the folder of one Triton. Raises `OSError` where a file is missing."""
    releases = sorted(((_version(p), p) for p in packages), key=lambda r: [int(n) for n in r[0].split(".")[:3]])
    newest = releases[-1][1]
    history = {f"triton.{n}": r for n, r in _history(releases, _top).items()}
    history |= {f"triton.language.{n}": r for n, r in _history(releases, _language).items()}
    history |= {f"triton.language.math.{n}": r for n, r in _history(releases, _math).items()}
    oldest, latest = releases[0][0], releases[-1][0]
    return {
        "releases": [version for version, _ in releases],
        "names": sorted(history),
        "since": {n: first for n, (first, _) in history.items() if first != oldest},
        "until": {n: last for n, (_, last) in history.items() if last != latest},
        "libdevice": {b: sorted(_functions(newest / f"language/extra/{b}/libdevice.py")) for b in BACKENDS},
        "options": {b: _fields(newest / f"backends/{d}/compiler.py", c) for b, (d, c) in BACKENDS.items()},
        "methods": sorted(_methods(newest)),
        "descriptor_methods": sorted(_members(newest / "language/core.py", "tensor_descriptor_base")),
    }


def _history(releases: Sequence[tuple[str, Path]], read: Any) -> dict[str, list[str]]:
    """Return name -> [first release that has it, last release that has it]."""
    found: dict[str, list[str]] = {}
    for version, package in releases:
        for name in read(package):
            found.setdefault(name, [version, version])[1] = version
    return found


def _installed() -> Path:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise SystemExit("no triton in this environment; give a directory that holds one")
    return Path(spec.origin).parent


def _version(package: Path) -> str:
    for node in _tree(package / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    raise SystemExit(f"{package}: no __version__")


def _top(package: Path) -> set[str]:
    return _bound(package / "__init__.py") | _submodules(package)


def _language(package: Path) -> set[str]:
    return _bound(package / "language/__init__.py") | _submodules(package / "language")


def _math(package: Path) -> set[str]:
    return _bound(package / "language/math.py")


def _submodules(folder: Path) -> set[str]:
    """Submodules that are written as one: a name with a leading underscore is no one's to use."""
    names = {p.stem for p in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")}
    return {n for n in names if not n.startswith("_")}


def _bound(file: Path) -> set[str]:
    """Names bound at the top level of a module."""
    names: set[str] = set()
    for node in _tree(file).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.Assign):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return {n for n in names if not n.startswith("__")} | {"__version__"} & names


def _functions(file: Path) -> set[str]:
    return {n.name for n in _tree(file).body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}


def _fields(file: Path, name: str) -> list[str]:
    body = _class(file, name).body
    return sorted(n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name))


def _methods(package: Path) -> set[str]:
    """Methods of a tensor: those of its class, and the functions that are made members of it."""
    found = _members(package / "language/core.py", "tensor") | {"T", "shape", "dtype"}
    for file in ("core.py", "standard.py", "math.py"):
        for node in _tree(package / "language" / file).body:
            if isinstance(node, ast.FunctionDef) and any(
                "_tensor_member_fn" in ast.unparse(d) for d in node.decorator_list
            ):
                found.add(node.name)
    return found


def _members(file: Path, name: str) -> set[str]:
    return {n.name for n in _class(file, name).body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}


def _class(file: Path, name: str) -> ast.ClassDef:
    return next(n for n in _classes(file) if n.name == name)


def _classes(file: Path) -> Iterator[ast.ClassDef]:
    yield from (n for n in ast.walk(_tree(file)) if isinstance(n, ast.ClassDef))


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
