"""What the names of a Python file stand for, through imports under any alias, as dotted paths.

import triton.language as tl            tl.load      triton.language.load
from triton.language import load as ld  ld           triton.language.load
from triton.language.core import load   load         triton.language.load
exp = tl.exp                            exp          triton.language.exp
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGE = "triton.language."

# Modules in which the language is defined: what they hold is written as `tl.<name>` too.
_HOMES = ("core", "standard", "random", "semantic")


@dataclass(frozen=True)
class KnownNames:
    """What `names.json` holds (see `snapshot.py`)."""

    releases: tuple[str, ...]  # of Triton, oldest first
    names: frozenset[str]  # "triton.language.load", of any of the releases
    since: Mapping[str, str]  # first release, where it is not the oldest
    until: Mapping[str, str]  # last release, where it is not the newest
    libdevice: Mapping[str, frozenset[str]]  # backend -> functions
    options: Mapping[str, frozenset[str]]  # backend -> launch options
    methods: frozenset[str]  # of a tensor
    descriptor_methods: frozenset[str]


@cache
def known() -> KnownNames:
    """Return the names of the Triton releases that the data file was written from."""
    data: dict[str, Any] = json.loads(Path(__file__).with_name("names.json").read_text())
    return KnownNames(
        releases=tuple(data["releases"]),
        names=frozenset(data["names"]),
        since=data["since"],
        until=data["until"],
        libdevice={backend: frozenset(names) for backend, names in data["libdevice"].items()},
        options={backend: frozenset(names) for backend, names in data["options"].items()},
        methods=frozenset(data["methods"]),
        descriptor_methods=frozenset(data["descriptor_methods"]),
    )


class Names:
    """The imports and plain aliases of one module, wherever in it they stand.

    A name that is imported in several ways (an `except ImportError` has the other one) stands for the first; all
    are in `alternatives`.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.alternatives: dict[str, list[str]] = {}
        self._stars: list[str] = []
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(node)
        for node in getattr(tree, "body", []):
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Attribute, ast.Name)):
                self._alias(node)

    def resolve(self, node: ast.AST | None) -> str:
        """Return the dotted path of `node`, a name or an attribute of one, or "" where it is not known."""
        if isinstance(node, ast.Name):
            if node.id in self.alternatives:
                return self.alternatives[node.id][0]
            return self._from_star(node.id)
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            return canonical(f"{base}.{node.attr}") if base else ""
        return ""

    def language(self, node: ast.AST | None) -> str:
        """Return `load` for any spelling of `tl.load`; `math.x` and `extra.…` where only those have it; else ""."""
        path = self.resolve(node)
        return path[len(LANGUAGE) :] if path.startswith(LANGUAGE) else ""

    def libdevice(self, node: ast.AST | None) -> str:
        """Return `cbrt` for any spelling of `libdevice.cbrt`, else ""."""
        head, _, name = self.resolve(node).rpartition(".")
        return name if head.startswith(LANGUAGE + "extra") and head.endswith(".libdevice") else ""

    def uses_triton(self) -> bool:
        """Return whether anything is imported from Triton."""
        return any(path.split(".")[0] == "triton" for paths in self.alternatives.values() for path in paths) or any(
            star.split(".")[0] == "triton" for star in self._stars
        )

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self._add(alias.asname, alias.name)
            else:
                head = alias.name.split(".")[0]
                self._add(head, head)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._stars.append(module)
            else:
                joint = "" if module.endswith(".") else "."
                self._add(alias.asname or alias.name, f"{module}{joint}{alias.name}")

    def _alias(self, node: ast.Assign) -> None:
        path = self.resolve(node.value)
        for target in node.targets:
            if path and isinstance(target, ast.Name):
                self._add(target.id, path)

    def _add(self, name: str, path: str) -> None:
        paths = self.alternatives.setdefault(name, [])
        if canonical(path) not in paths:
            paths.append(canonical(path))

    def _from_star(self, name: str) -> str:
        for module in self._stars:
            path = canonical(f"{module}.{name}")
            if path in known().names or (module.endswith(".libdevice") and name in known().libdevice["cuda"]):
                return path
        return ""


def canonical(path: str) -> str:
    """Return the shortest usual spelling of a dotted path into Triton; other paths as they are."""
    if not path.startswith("triton."):
        return path
    parts = path.split(".")
    if parts[:2] == ["triton", "language"] and len(parts) > 3:
        if parts[2] in _HOMES:
            return ".".join(["triton", "language", *parts[3:]])
        if parts[2] == "math" and LANGUAGE + parts[3] in known().names:
            return ".".join(["triton", "language", *parts[3:]])
    if parts[1] in ("runtime", "compiler") and f"triton.{parts[-1]}" in known().names:
        return f"triton.{parts[-1]}"  # triton.runtime.jit.jit, triton.runtime.autotuner.autotune
    return path
