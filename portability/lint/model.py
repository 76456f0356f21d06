"""The nouns of the linter: findings, rules, and the examples that are their tests."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portability.lint.source import Source

EVERYWHERE = ("*",)


@dataclass(frozen=True, order=True)
class LintFinding:
    """One place that is not portable. Lines and columns count from 1."""

    path: str
    line: int
    column: int
    code: str  # "TP401"
    rule: str  # "int32-offset"
    message: str
    targets: tuple[str, ...] = EVERYWHERE  # patterns of target ids that it concerns: "hip:gfx9*"
    link: str = ""

    def concerns(self, target: str) -> bool:
        """Return whether the finding matters on `target` ("hip:gfx942")."""
        return any(fnmatch.fnmatchcase(target, pattern) for pattern in self.targets)


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read as Python, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Report:
    """What was found in a number of files."""

    findings: tuple[LintFinding, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    files: int = 0
    kernels: int = 0  # functions of the language in them

    @property
    def exit_code(self) -> int:
        """0 nothing, 1 findings, 2 something could not be read."""
        return 2 if self.unreadable else int(bool(self.findings))


@dataclass(frozen=True)
class Hit:
    """What a rule's check yields: the place, the message, and the targets where they are narrower than the rule's."""

    node: ast.AST
    message: str
    targets: tuple[str, ...] = ()


Check = Callable[["Source"], Iterator[Hit]]


@dataclass(frozen=True)
class Rule:
    """One rule. `bad` fires on its lines that end in `# here` and nowhere else, `good` fires nothing: tests do both."""

    code: str
    name: str
    summary: str  # one line
    reason: str  # why it is not portable, from the check's docstring
    link: str
    bad: str
    good: str
    check: Check = field(repr=False)
    targets: tuple[str, ...] = EVERYWHERE
    branches: bool = False  # a branch on the vendor around the place is the remedy, so nothing in one is reported


MARK = "# here"

registered: dict[str, Rule] = {}  # code -> rule


def rule(
    code: str,
    name: str,
    *,
    link: str,
    bad: str,
    good: str,
    targets: tuple[str, ...] = EVERYWHERE,
    branches: bool = False,
) -> Callable[[Check], Check]:
    """Register the decorated check. Its docstring is a one-line summary and, after an empty line, the reason."""

    def register(check: Check) -> Check:
        summary, _, reason = (check.__doc__ or "").partition("\n\n")
        text = " ".join(reason.split())
        if code in registered:
            raise ValueError(f"rule {code} twice: {registered[code].name} and {name}")
        registered[code] = Rule(
            code, name, " ".join(summary.split()), text, link, bad.strip("\n") + "\n", good.strip("\n") + "\n",
            check, targets, branches,
        )  # fmt: skip
        return check

    return register
