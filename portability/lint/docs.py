"""Writes the rules into `docs/rules.md`, between its two markers; what is around them is written by hand.

python -m portability.lint.docs [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from portability.lint.formatting import explanation
from portability.lint.model import Rule, registered
from portability.pages import between

BEGIN = "<!-- begin rules: python -m portability.lint.docs -->"
END = "<!-- end rules -->"

FAMILIES = {
    "TP1": "Devices and vendors",
    "TP2": "Launches, grids, tuning",
    "TP3": "Precision and values",
    "TP4": "Addresses and masks",
    "TP5": "Names and arguments of the language",
}


def main(argv: Sequence[str]) -> int:
    """Bring the file in step with the rules. Raises `ValueError` where it has no markers."""
    file = Path(argv[0]) if argv else Path(__file__).parents[2] / "docs/rules.md"
    file.write_text(updated(file.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def updated(text: str) -> str:
    """Return the page with its generated part replaced. Raises `ValueError` where it has no markers."""
    return between(text, BEGIN, END, generated(), "the page of rules")


def generated() -> str:
    """Return the table of rules, and each rule with its reason and examples, as Markdown."""
    rules = sorted(registered.values(), key=lambda r: r.code)
    rows = [f"| [{r.code}](#{_anchor(r)}) | {r.name} | {r.summary} | {_targets(r)} |" for r in rules]
    parts = ["\n".join(["| code | name | finds | targets |", "| --- | --- | --- | --- |", *rows]) + "\n"]
    for prefix, title in FAMILIES.items():
        parts.append(f"## {title}\n")
        parts += [explanation(r) for r in rules if r.code.startswith(prefix)]
    return "\n".join(parts)


def _targets(rule: Rule) -> str:
    return "all" if rule.targets == ("*",) else ", ".join(f"`{t}`" for t in rule.targets)


def _anchor(rule: Rule) -> str:
    return f"{rule.code} {rule.name}".lower().replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
