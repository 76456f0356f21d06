"""Arguments of a call, by keyword or by position."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword argument."""
    return next((k.value for k in node.keywords if k.arg == name), None)


def argument(node: ast.Call, args: Sequence[ast.expr], position: int, name: str) -> ast.expr | None:
    """Return an argument by position (of `args`, which for a method begins with its receiver) or by keyword."""
    return args[position] if len(args) > position else keyword(node, name)
