"""Static rules: what in a file of Triton kernels is not portable, found without importing it, torch or triton.

    report = lint_paths(["kernels"])
    print(render(report, "text"))

The rules are in `devices`, `vendors`, `grids`, `launching`, `tuning`, `precision`, `numerics`, `memory` and `language`;
`docs/rules.md` describes them.
"""

from __future__ import annotations

from portability.lint import devices, grids, language, launching, memory, numerics, precision, tuning, vendors
from portability.lint.formatting import FORMATS, render
from portability.lint.model import LintFinding, Report, Rule, Unreadable
from portability.lint.model import registered as RULES
from portability.lint.run import lint_paths, lint_source

__all__ = [
    "FORMATS",
    "RULES",
    "LintFinding",
    "Report",
    "Rule",
    "Unreadable",
    "lint_paths",
    "lint_source",
    "render",
]

del devices, grids, language, launching, memory, numerics, precision, tuning, vendors  # imported for their rules
