"""Texts without the paths of one machine: what is recorded is read on others."""

from __future__ import annotations

import os
import re
import site
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# A folder that a runner or a cell made for itself, whatever lies before it.
OWN = re.compile(r"/[^\s'\":]*/(?:cell|runner)-[A-Za-z0-9_]+/")


def without_paths(text: str, root: str | Path = ".") -> str:
    """Return `text` with its paths relative to the project, to the packages, or to the temporary folder."""
    if "/" not in text:
        return text
    text = OWN.sub("", text)
    for prefix in _prefixes(str(root), os.getcwd(), tempfile.gettempdir()):
        text = text.replace(prefix + "/", "")
    return text


@cache
def _prefixes(root: str, working: str, temporary: str) -> Sequence[str]:
    """Return the folders that are left out of texts, longest first."""
    package = Path(__file__).resolve().parent.parent
    found = {str(Path(root).resolve()), str(package), working, temporary, sys.prefix, *site.getsitepackages()}
    found |= {str(Path(sys.executable).resolve().parent.parent), str(Path.home())}
    return sorted(found - {"/", ""}, key=len, reverse=True)


def package_of(path: Path) -> tuple[Path, str]:
    """Return the folder that a Python file's outermost package lies in, and the file's dotted name in it."""
    folder, parts = path.resolve().parent, [path.stem]
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def importable(folder: Path) -> None:
    """Let this process import the modules that lie in `folder`, after all others: those that a matrix.toml names."""
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
