"""Puts a skeleton into a project: into the folders of this repository, or beside a project's matrix.toml."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from portability.matrix import MatrixError, parse_matrix
from portability.plugin import find_matrix

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
KINDS: Mapping[str, str] = {"kernel": "kernels", "backend": "backends"}  # -> the key of [matrix], and the folder


@dataclass(frozen=True)
class Skeleton:
    """What is to be written: new files with their texts, and what matrix.toml is to become."""

    files: Mapping[Path, str]
    matrix: tuple[Path, str] | None  # its path and whole new text, where it must name the new module

    def write(self) -> Iterator[Path]:
        """Write and yield each file, matrix.toml last; none where one is there: that raises `FileExistsError`."""
        for path in self.files:
            if path.exists():
                raise FileExistsError(f"{path}: is there already, and nothing is overwritten; take another name")
        for path, text in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:  # "x": not even one that came meanwhile
                file.write(text)
            yield path
        if self.matrix is not None:
            self.matrix[0].write_text(self.matrix[1], encoding="utf-8")
            yield self.matrix[0]


def plan(kind: str, name: str, here: Path) -> Skeleton:
    """Return the skeleton of a new kernel or backend for the project at `here`.

    Raises `ValueError` for a name that cannot be a module's, `MatrixError` for a matrix.toml that cannot be read.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"{name!r}: a name of small letters, digits and '_' is needed, since a module is named by it")
    matrix = find_matrix(here)
    root = matrix.resolve().parent if matrix else here.resolve()
    if root == PACKAGE.parent:  # this repository: its folders are searched, and no list is edited
        folder, tests = root / KINDS[kind], root / "tests" / "engine"
        return Skeleton(_files(kind, name, folder, tests / f"test_{name}_{kind}.py"), None)
    tests = root / "tests" if (root / "tests").is_dir() else root
    test = tests / f"test_{name}.py"
    text = matrix.read_text(encoding="utf-8") if matrix else ""
    package = _package(root, parse_matrix(text).kernels) if kind == "kernel" else None
    if package is not None:  # a package of kernels is searched with all its modules
        return Skeleton(_files(kind, name, package, test), None)
    return Skeleton(_files(kind, name, root, test), (matrix or root / "matrix.toml", named(text, KINDS[kind], name)))


def _package(root: Path, modules: tuple[str, ...]) -> Path | None:
    folders = (root.joinpath(*module.split(".")) for module in modules)
    return next((f for f in folders if (f / "__init__.py").is_file()), None)


def _files(kind: str, name: str, folder: Path, test: Path) -> dict[Path, str]:
    words = {"name": name, "title": name.replace("_", " "), "class_name": "".join(p.title() for p in name.split("_"))}
    made = {folder / f"{name}.py": f"{kind}.py", test: f"test_{kind}.py"}
    if kind == "backend":
        made[folder / f"{name}.toml"] = "backend.toml"
    return {
        path: Template((HERE / f"{t}.txt").read_text(encoding="utf-8")).substitute(words) for path, t in made.items()
    }


def named(text: str, key: str, module: str) -> str:
    """Return a matrix.toml that names `module` in `key` of [matrix], all else as it was.

    Raises `MatrixError` where it cannot be put in so that the file says just that more.
    """
    wanted = getattr(parse_matrix(text), key)
    if module in wanted:
        return text
    listed = re.search(rf"(?ms)^(\s*{key}\s*=\s*)(\[[^\]]*\]|\"[^\"]*\")", _section(text))
    if listed:
        values = ", ".join(f'"{m}"' for m in (*wanted, module))
        new = text.replace(listed[0], f"{listed[1]}[{values}]", 1)
    elif heading := re.search(r"(?m)^\[matrix\][^\n]*\n?", text):
        new = f'{text[: heading.end()].rstrip()}\n{key} = ["{module}"]\n{text[heading.end() :]}'
    else:
        new = f'[matrix]\n{key} = ["{module}"]\n' + (f"\n{text}" if text.strip() else "")
    if getattr(parse_matrix(new), key) != (*wanted, module):
        raise MatrixError(f'matrix.toml: add "{module}" to {key} of [matrix] by hand: the file is written unusually')
    return new


def _section(text: str) -> str:
    """Return [matrix] up to the next heading."""
    found = re.search(r"(?ms)^\[matrix\].*?(?=^\[|\Z)", text)
    return found[0] if found else ""
