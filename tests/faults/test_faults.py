"""Kernels with one fault each, by class: `portability check` names it, on its line and its targets, and nothing else.

Each file of a folder beside this one states, as literals:

    FINDS    code -> targets that the finding must name; "*" is every target
    PASSES   targets on which nothing may be found that has an outcome
    LACKS    code -> targets that the finding must not name

and marks the line of a finding with `# here: code`.

`PORTABILITY_FAULTS` may name a folder of further such files; of these only `CASE["class"]` is known.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from portability.checks.model import FileReport
from portability.checks.session import Checker, Request

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.py"))
FOLDER = os.environ.get("PORTABILITY_FAULTS", "")
OTHERS = sorted(Path(FOLDER).glob("*.py")) if FOLDER else []
KERNELS = sorted(p for p in (HERE.parents[1] / "kernels").glob("*.py") if "KernelCase(" in p.read_text())
EVERY = "*"
MARK = re.compile(r"# here: ([\w, -]+)")

# CASE["class"] of other files -> codes, one of which is the right report.
REPORTS: Mapping[str, Sequence[str]] = {
    "api:launch-options": ["unknown-option"],
    "api:shape-rules": ["not-a-power-of-two"],
    "api:dot-minimum-size": ["dot-minimum"],
    "api:inline-asm": ["inline-assembly"],
    "api:libdevice": ["libdevice-gap"],
    "concurrency:forward-progress": ["timeout"],
    "concurrency:grid-order": ["race"],
    "dtype:atomics": ["atomic-emulated"],
    "dtype:bf16-availability": ["dot-emulated"],
    "dtype:fp8-availability": ["float8-type"],
    "dtype:fp8-conversion": ["fp8-saturation"],
    "dtype:fp8-format": ["float8-type"],
    "interpreter:bf16": ["half-accumulator"],
    "launch:empty-grid": ["grid-empty"],
    "memory:int32-offset-overflow": ["int-overflow"],
    "memory:non-contiguous": ["wrong-value"],
    "memory:out-of-bounds": ["out-of-bounds", "out-of-view"],
    "memory:undefined-masked-lanes": ["undefined-lanes"],
    "numerics:dot-precision": ["dot-precision", "dot-precision-name"],
    "resource:ascend-UB": ["buffer"],
    "resource:grid-limit": ["grid-limit", "grid-total"],
    "resource:shared-memory": ["shared-memory"],
    "resource:threads-per-block": ["threads"],
    "runtime:autotune-side-effects": ["autotune-side-effect"],
    "semantics:constexpr": ["mixed-signs"],
}


@dataclass(frozen=True)
class Expected:
    """What a file says of itself."""

    finds: Mapping[str, Sequence[str]]
    passes: Sequence[str]
    lacks: Mapping[str, Sequence[str]]
    lines: Mapping[str, set[str]]  # code -> the lines that are marked with it

    @property
    def targets(self) -> set[str]:
        """Those that must be asked to know."""
        named = {t for table in (self.finds, self.lacks) for ts in table.values() for t in ts}
        return ({*named, *self.passes} - {EVERY}) | ({"interpreter"} if EVERY in named else set())


def expected(path: Path) -> Expected:
    """Read a file's literals and marks; it is not imported."""
    text = path.read_text()
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("FINDS", "PASSES", "LACKS")
    }  # fmt: skip
    lines: dict[str, set[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for code in m[1].split(",") if (m := MARK.search(line)) else []:
            lines.setdefault(code.strip(), set()).add(str(number))
    return Expected(values["FINDS"], values.get("PASSES", ()), values.get("LACKS", {}), lines)


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    """One checker, and so one runner, for all files of a worker."""
    made = Checker(Request(), tmp_path_factory.mktemp("runners"), HERE)
    yield made
    made.close()


def told(report: FileReport) -> str:
    """Return a report's findings for a failing test's message."""
    return "\n".join(f"{f.line}: {f.code} {f.outcome or ''} {f.targets}: {f.message}" for f in report.faults)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_fault_is_reported(path: Path, checker: Checker) -> None:
    """Its code, targets and line; on targets where it does not bite, nothing with an outcome."""
    known = expected(path)
    report = checker.check(path, only=sorted(known.targets))
    assert not report.unreadable
    for code, targets in known.finds.items():
        found = [f for f in report.faults if f.code == code]
        said = {t for f in found for t in f.targets} | ({EVERY} if any(f.everywhere for f in found) else set())
        assert set(targets) <= said, f"{code}:\n{told(report)}"
        if code in known.lines:
            assert {f.line.rpartition(":")[2] for f in found} == known.lines[code], f"{code}:\n{told(report)}"
    for target in known.passes:
        bad = [f for f in report.faults if f.outcome is not None and target in f.targets]
        assert not bad, f"{target}:\n{told(report)}"
    for code, targets in known.lacks.items():
        assert not {t for f in report.faults if f.code == code for t in f.targets} & set(targets), told(report)


def test_each_class_has_three() -> None:
    """One shape of a fault is an anecdote."""
    folders = {p.parent.name for p in FILES}
    assert len(folders - {"right"}) >= 27
    assert not [f for f in folders if sum(p.parent.name == f for p in FILES) < 3]


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_a_bundled_kernel_has_no_fault(path: Path, checker: Checker) -> None:
    """No false alarm: nothing with an outcome, and no missing barrier, on a sample of each case at two dtypes."""
    report = checker.check(path, only=["interpreter"])
    assert not report.unreadable
    assert not [f for f in report.faults if f.outcome is not None or f.code == "missing-barrier"], told(report)


@pytest.mark.skipif(not OTHERS, reason="PORTABILITY_FAULTS names no folder of further files")
@pytest.mark.parametrize("path", OTHERS, ids=lambda p: p.stem)
def test_other_files_get_the_report_of_their_class(path: Path, checker: Checker) -> None:
    """A file says of which class its fault is; of a class that is not known, something must be found."""
    report = checker.check(path)
    assert not report.unreadable
    kind = _class(path)
    codes = {f.code for f in report.faults}
    assert codes & set(REPORTS[kind]) if kind in REPORTS else codes, f"{kind}: {told(report)}"


def _class(path: Path) -> str:
    """Return the value of "class" in a file's CASE."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "class" and isinstance(value, ast.Constant):
                    return str(value.value)
    return ""
