"""Which kernel is meant: a name of the catalogue, a file of kernel cases, or a loose file that launches kernels.

A file is taken with the project that it lies in: the nearest matrix.toml above it gives adapters, environments and
blocks; without one, the file is a project of its own.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path

from portability.catalogue import Catalogue
from portability.kernel import relative
from portability.matrix import Matrix, read_matrix
from portability.paths import package_of
from portability.plugin import find_matrix
from portability.tomltable import nearest

PACKAGE = Path(__file__).resolve().parent.parent
FILE_AND_NAME = ".py:"  # between the file and one of its cases: kernels/matmul.py:matmul_persistent


@dataclass(frozen=True)
class Subject:
    """What is to be moved, and the project that it is read in."""

    matrix: Matrix
    root: Path  # the folder in which runners are started: its modules can be imported
    name: str = ""  # of one case
    file: Path | None = None  # whose cases are meant, where no name is given
    loose: bool = False  # the file has no cases, and launches kernels itself

    def cases(self, catalogue: Catalogue) -> list[str]:
        """Return the names of the cases that are meant. Raises `ValueError` with the choices."""
        if self.file is not None:
            self._check_import(catalogue)
            shown = relative(str(self.file), self.root)
            found = [c.name for c in catalogue.cases if c.file == shown]
            if self.name and self.name not in found:
                raise ValueError(f"{shown}: no kernel case {self.name!r}; {nearest(self.name, found)}")
            if not found:
                raise ValueError(f"{shown}: its kernel cases are not found; is CASE or CASES set when it is imported?")
            return [self.name] if self.name else found
        names = [c.name for c in catalogue.cases]
        if self.name not in names:
            kernels = [c.name for c in catalogue.cases if not c.group]
            raise ValueError(
                f"no kernel {self.name!r}; {nearest(self.name, kernels)}; or name a file: path/to/kernel.py"
            )
        return [self.name]

    def _check_import(self, catalogue: Catalogue) -> None:
        assert self.file is not None
        for module, why in catalogue.errors.items():
            if module.rpartition(".")[2] == self.file.stem:
                raise ValueError(f"{self.file.name}: cannot be imported: {why}")


def find(kernel: str, matrix: Path | None, here: Path) -> Subject:
    """Return what `kernel` means in the project at `here`: a name, FILE.py, or FILE.py:NAME.

    Raises `ValueError` for a file that is not there, is no Python, or holds no kernels, `MatrixError` for a matrix.toml
    that is wrong.
    """
    path, name = _split(kernel)
    if path is None:
        found = matrix or find_matrix(here)
        return Subject(read_matrix(found) if found else Matrix(), found.resolve().parent if found else here, name)
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    found = matrix or find_matrix(path.resolve().parent)
    project = read_matrix(found) if found else Matrix()
    folder, module = package_of(path)
    root = found.resolve().parent if found else folder
    if not _exports_cases(path):
        if name:
            raise ValueError(f"{path}: it exports no kernel case {name!r}, nor any other")
        return Subject(project, root, file=path.resolve(), loose=True)
    if _bundled(path) or any(_is_module(root, m, path) for m in project.kernels):
        return Subject(project, root, name, path.resolve())
    return Subject(replace(project, kernels=(*project.kernels, module)), folder, name, path.resolve())


def _split(kernel: str) -> tuple[Path | None, str]:
    file, separator, name = kernel.partition(FILE_AND_NAME)
    if separator:
        return Path(file + ".py"), name
    return (Path(kernel), "") if kernel.endswith(".py") or "/" in kernel else (None, kernel)


def _bundled(path: Path) -> bool:
    """Whether a file is one of the bundled kernels, which are found by themselves."""
    return (PACKAGE / "kernels").resolve() in path.resolve().parents


def _is_module(root: Path, module: str, path: Path) -> bool:
    """Whether a module or package that matrix.toml names already holds the file."""
    place = root.joinpath(*module.split("."))
    return path.resolve() == place.with_suffix(".py").resolve() or place.resolve() in path.resolve().parents


def _exports_cases(path: Path) -> bool:
    """Whether a file binds `CASE` or `CASES`, and names `KernelCase`. Raises `ValueError` where it is no Python."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read as Python: {error}") from None
    bound = {
        t.id
        for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign))
        for t in (n.targets if isinstance(n, ast.Assign) else [n.target]) if isinstance(t, ast.Name)
    }  # fmt: skip
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)
    }
    return bool(bound & {"CASE", "CASES"}) and "KernelCase" in names
