"""Comments that suppress findings: `# noqa`, `# noqa: TP401`, `# portability: ignore-file[TP401]`."""

from __future__ import annotations

import ast
import io
import re
import tokenize

_NOQA = re.compile(r"#\s*noqa(?::\s*(?P<codes>[A-Z]+\d*(?:[\s,]+[A-Z]+\d+)*))?", re.IGNORECASE)
_FILE = re.compile(r"#\s*portability:\s*ignore-file(?:\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)
_COMPOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try)


class Suppressions:
    """The comments of one file."""

    def __init__(self, text: str) -> None:
        comments = _comments(text)
        self._lines = {line: m["codes"] for line, comment in comments.items() if (m := _NOQA.search(comment))}
        matches = [m for comment in comments.values() if (m := _FILE.search(comment))]
        self._file = [code.strip().upper() for m in matches for code in (m["codes"] or "").split(",")]

    def cover(self, code: str, node: ast.AST, statement: ast.AST) -> bool:
        """Return whether a comment on the file, or on the first or last line of the place or of its statement, says so.

        A code's beginning ("TP4") covers all that begin with it; no code covers everything.
        """
        if any(code.startswith(c) for c in self._file):
            return True
        places = [node] if isinstance(statement, _COMPOUND) else [node, statement]
        lines = {line for p in places for line in (getattr(p, "lineno", 1), getattr(p, "end_lineno", 1))}
        return any(self._covers(line, code) for line in lines)

    def _covers(self, line: int, code: str) -> bool:
        if line not in self._lines:
            return False
        codes = self._lines[line]
        return codes is None or any(code.startswith(c) for c in re.split(r"[\s,]+", codes.upper()) if c)


def _comments(text: str) -> dict[int, str]:
    """Line -> comment. A file that parses and cannot be tokenized to its end keeps the comments before that."""
    found: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string
    except (tokenize.TokenError, IndentationError):
        return found
    return found
