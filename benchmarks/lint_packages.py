"""What the static rules find in other projects' kernels: counts by rule over packages, from their wheels.

    python benchmarks/lint_packages.py [WHEEL|NAME]... [-o FOLDER] [--sample N] [--seed S]

A name is downloaded by pip, without its dependencies. `packages.json` gets the counts with versions, `README.md` in the
same folder a table between its markers. `--sample` writes `sample.tsv`: up to N findings of each rule, drawn at
random, to be looked at by hand; copies of a file in several folders count once.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import portability
from portability.lint import RULES, LintFinding, lint_paths
from portability.pages import between

PACKAGES = ("liger-kernel", "flag-gems", "fla-core", "flash-linear-attention")
BEGIN, END = "<!-- begin counts: python benchmarks/lint_packages.py -->", "<!-- end counts -->"


@dataclass(frozen=True)
class Linted:
    """One wheel, its size and what was found in it; paths are inside the wheel."""

    name: str
    version: str
    files: int
    kernels: int
    unreadable: int
    findings: tuple[LintFinding, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by rule."""
        return dict(sorted(Counter(f.code for f in self.findings).items()))


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        wheels = [_wheel(p, Path(folder)) for p in options.packages or PACKAGES]
        linted = [lint_wheel(w, Path(folder) / "unpacked" / w.stem) for w in wheels]
    options.output.mkdir(parents=True, exist_ok=True)
    data = {"portability": portability.__version__, "packages": [_data(one) for one in linted]}
    (options.output / "packages.json").write_text(json.dumps(data, indent=1) + "\n")
    table = markdown(linted)
    print(table)
    _write_between(options.output / "README.md", table)
    if options.sample:
        _write_sample(options.output / "sample.tsv", sample(linted, options.sample, options.seed))
    return 0


def lint_wheel(wheel: Path, folder: Path) -> Linted:
    """Return what is found in a wheel, unpacked into `folder`."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    report = lint_paths([folder])
    name, version = wheel.name.split("-")[:2]
    inside = tuple(
        LintFinding(
            PurePath(f.path).relative_to(folder).as_posix(), f.line, f.column, f.code, f.rule, f.message, f.targets
        )
        for f in report.findings
    )
    return Linted(name.replace("_", "-"), version, report.files, report.kernels, len(report.unreadable), inside)


def markdown(linted: Sequence[Linted]) -> str:
    """Return the table of rules by packages, with the sizes of the packages below."""
    codes = [c for c in sorted(RULES) if any(c in one.counts for one in linted)]
    head = ["| rule | " + " | ".join(f"{one.name} {one.version}" for one in linted) + " |"]
    head.append("| --- |" + " ---: |" * len(linted))
    rows = [_row(f"{c} {RULES[c].name}", [one.counts.get(c, 0) for one in linted]) for c in codes]
    rows.append(_row("all", [len(one.findings) for one in linted]))
    rows.append(_row("Python files", [one.files for one in linted]))
    rows.append(_row("functions of the language", [one.kernels for one in linted]))
    return "\n".join(head + rows)


def sample(linted: Sequence[Linted], each: int, seed: int) -> Iterator[tuple[str, LintFinding]]:
    """Yield up to `each` findings of each rule with their package, drawn from distinct ones."""
    distinct: dict[tuple[str, str], tuple[str, LintFinding]] = {}
    for one in linted:
        for finding in one.findings:
            key = PurePath(finding.path).name, finding.message
            distinct.setdefault(key, (one.name, finding))
    for code in sorted(RULES):
        draw = random.Random(f"{seed} {code}")  # of its own, so that another rule changes nothing
        found = [entry for entry in distinct.values() if entry[1].code == code]
        yield from draw.sample(found, min(each, len(found)))


def _row(title: str, numbers: Sequence[int]) -> str:
    return f"| {title} | " + " | ".join(str(n) for n in numbers) + " |"


def _data(one: Linted) -> dict[str, object]:
    return {
        "name": one.name, "version": one.version, "files": one.files, "kernels": one.kernels,
        "unreadable": one.unreadable, "findings": len(one.findings), "counts": one.counts,
    }  # fmt: skip


def _wheel(given: str, folder: Path) -> Path:
    if given.endswith(".whl"):
        return Path(given)
    into = folder / "wheels" / given
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "-d",
        str(into),
        given,
    ]
    subprocess.run(pip, check=True)
    return next(into.glob("*.whl"))


def _write_between(file: Path, table: str) -> None:
    text = file.read_text() if file.exists() else f"{BEGIN}\n{END}\n"
    file.write_text(between(text, BEGIN, END, f"{table}\n", file.name))


def _write_sample(file: Path, entries: Iterator[tuple[str, LintFinding]]) -> None:
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(["package", "place", "code", "message"])
        writer.writerows((package, f"{f.path}:{f.line}", f.code, f.message) for package, f in entries)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("packages", nargs="*", metavar="WHEEL|NAME", help=f"by default {', '.join(PACKAGES)}")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/lint"))
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="findings of each rule to look at")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
