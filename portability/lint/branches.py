"""Whether a place in a file is reached only for some vendors, or only in some versions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from portability.lint.constants import Function

if TYPE_CHECKING:
    from portability.lint.source import Source

# Words of a test that tells vendors, architectures or devices apart.
_VENDOR = re.compile(
    r"hip|rocm|amd|cuda|nvidia|npu|ascend|xpu|intel|musa|mlu|gcu|mps|cdna|rdna|gfx\d|hopper|blackwell|ampere|turing"
    r"|pdl|tma|ptx|mfma|wmma|wgmma|vendor|backend|platform|device_type|capability|\bsm_?\d|\barch\b|is_available",
    re.IGNORECASE,
)
_VERSION = re.compile(r"version|hasattr|\bhas_|above_\d|support|triton_\d", re.IGNORECASE)

# A folder, file or function that is named after a vendor holds that vendor's code: word -> backend.
_VENDORS = {
    **dict.fromkeys(("nvidia", "cuda", "nv"), "cuda"),
    **dict.fromkeys(("amd", "rocm", "hip"), "hip"),
    **dict.fromkeys(("ascend", "npu"), "npu"),
    **dict.fromkeys(
        ("hygon", "xpu", "intel", "cambricon", "mlu", "musa", "mthreads", "metax", "kunlunxin", "iluvatar", "enflame",
         "gcu", "aipu", "arm", "sunrise", "tsingmicro"), "other",
    ),
}  # fmt: skip


def vendor_of_file(path: str, folders: tuple[str, ...]) -> str:
    """Return the backend whose code a file holds, by a folder's words or the file's last one, else ""."""
    words = [w for f in folders for w in _words_of(f)] + _words_of(PurePath(path).stem)[-1:]
    return next((_VENDORS[w] for w in words if w in _VENDORS), "")


def in_vendor_branch(source: Source, node: ast.AST) -> bool:
    """Return whether the place is reached only after a test that tells vendors or devices apart.

    A test around it, one before it that returns or raises, and a function named after a vendor count.
    """
    child = node
    for ancestor in source.ancestors(node):
        if _is_tested(source, ancestor, child, _VENDOR):
            return True
        if isinstance(ancestor, Function) and _words_of(ancestor.name)[-1] in _VENDORS:
            return True
        if isinstance(ancestor, ast.BoolOp) and isinstance(child, ast.expr):
            earlier = ancestor.values[: ancestor.values.index(child)]
            if any(_matches(source, v, _VENDOR) for v in earlier):
                return True
        if isinstance(child, ast.stmt) and any(_leaves(source, s) for s in _before(ancestor, child)):
            return True
        child = ancestor
    return False


def is_guarded(source: Source, node: ast.AST) -> bool:
    """Return whether a failure there is handled, or the place is reached only after a test of version or name."""
    child = node
    for ancestor in source.ancestors(node):
        if isinstance(ancestor, ast.Try) and (child in ancestor.body or isinstance(child, ast.ExceptHandler)):
            return True
        if _is_tested(source, ancestor, child, _VERSION):
            return True
        child = ancestor
    return False


def in_main(source: Source, node: ast.AST) -> bool:
    """Return whether the place is in `if __name__ == "__main__":`, which is nobody's library."""
    return any(isinstance(a, ast.If) and "__name__" in ast.unparse(a.test) for a in source.ancestors(node))


def _is_tested(source: Source, branch: ast.AST, child: ast.AST, words: re.Pattern[str]) -> bool:
    """Return whether `child` is an arm of a branch whose test has one of the words."""
    return isinstance(branch, (ast.If, ast.IfExp)) and child is not branch.test and _matches(source, branch.test, words)


def _matches(source: Source, test: ast.AST, words: re.Pattern[str]) -> bool:
    return any(words.search(word) for word in _words(source, test))


def _words(source: Source, test: ast.AST) -> Iterator[str]:
    """Names, attributes and strings of a test; a name that is assigned once stands for its value too."""
    for node in ast.walk(test):
        yield from _word(node)
        value = source.constants.assigned(node) if isinstance(node, ast.Name) else None
        if value is not None:
            yield from (w for n in ast.walk(value) for w in _word(n))


def _word(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _leaves(source: Source, statement: ast.stmt) -> bool:
    """`if not is_hip(): return …`."""
    if isinstance(statement, ast.If) and isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Continue)):
        return _matches(source, statement.test, _VENDOR)
    return False


def _before(block: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements before `statement` in the list of `block` that holds it."""
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(block, field, None)
        if isinstance(statements, list) and statement in statements:
            return statements[: statements.index(statement)]
    return []


def _words_of(name: str) -> list[str]:
    return re.split(r"[_.\d-]+", name.lower().strip("_")) or [""]
