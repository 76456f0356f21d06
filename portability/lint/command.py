"""`portability lint`: the linter's arguments and exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from portability.lint.formatting import FORMATS, render
from portability.lint.model import Rule, registered
from portability.lint.run import lint_paths

EPILOG = """\
Suppress a finding with `# noqa: TP401` on its line, or those of a file with `# portability: ignore-file[TP401]`.
Exit code: 0 nothing found, 1 findings, 2 a file could not be read or an argument is wrong.
"""


def main_lint(argv: Sequence[str] | None = None) -> int:
    """Lint the paths in `argv`, print the findings, and return the exit code: 0 nothing, 1 findings, 2 unreadable."""
    options = parser().parse_args(argv)
    if options.explain:
        return _explain(options.explain)
    if not options.paths:
        print("portability lint: a path is needed", file=sys.stderr)
        return 2
    try:
        report = lint_paths(options.paths, _codes(options.select), _codes(options.ignore))
    except ValueError as error:
        print(f"portability lint: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(render(report, options.format))
    for file in report.unreadable:
        print(f"portability lint: {file.path}: {file.reason}", file=sys.stderr)
    if options.format == "text":
        found = f"{len(report.findings)} findings" if report.findings else "nothing found"
        print(f"{found} in {report.files} files with {report.kernels} kernels", file=sys.stderr)
    return report.exit_code


def parser() -> argparse.ArgumentParser:
    """Return the parser of `portability lint`."""
    found = argparse.ArgumentParser(
        prog="portability lint", description="Report what in Triton kernels is not portable.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    found.add_argument("paths", nargs="*", metavar="PATH", help="a Python file, or a folder that is searched for them")
    found.add_argument("--select", action="append", default=[], metavar="CODES", help="only these: TP4,TP301")
    found.add_argument("--ignore", action="append", default=[], metavar="CODES", help="not these")
    found.add_argument("--format", choices=sorted(FORMATS), default="text")
    found.add_argument("--explain", metavar="CODE", help="print a rule's reason and examples")
    return found


def explanation(rule: Rule) -> str:
    """Return a rule as Markdown: what, why, where, and both examples."""
    targets = "all targets" if rule.targets == ("*",) else ", ".join(f"`{t}`" for t in rule.targets)
    return (
        f"### {rule.code} {rule.name}\n\n{rule.summary}\n\n{rule.reason}\n\n"
        f"Targets: {targets}. [Reference]({rule.link})\n\n"
        f"Bad:\n\n```python\n{rule.bad}```\n\nGood:\n\n```python\n{rule.good}```\n"
    )


def _explain(code: str) -> int:
    rule = registered.get(code.upper())
    if rule is None:
        print(f"portability lint: no rule {code!r}; there are {', '.join(registered)}", file=sys.stderr)
        return 2
    sys.stdout.write(explanation(rule))
    return 0


def _codes(given: Sequence[str]) -> list[str]:
    return [code.strip() for entry in given for code in entry.split(",") if code.strip()]
