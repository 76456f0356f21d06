"""The harness with one mistake each: some test of the engine fails, as the kernels' mutants fail some cell.

What would make a harness pass wrong kernels, or claim more than it saw: a tolerance that is too wide, guard zones or
poison that are gone, an outcome or an evidence that is not what was seen, rules that fit everything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import ROOT


@dataclass(frozen=True)
class Mutant:
    """A text of a file of the engine, what stands in its place, and the tests that are to tell."""

    file: str
    before: str
    after: str
    tests: str  # a file of tests/engine
    only: str = ""  # pytest's -k


COMPARE, JUDGING, FAULTS, VALUES = "test_compare", "test_judging", "test_interpret_faults", "test_interpret_values"
MATRIX, TABLE, RESULTS, TIMING = "test_matrix_file", "test_table", "test_results", "test_timing"
MUTANTS = [
    # values
    Mutant("compare.py", "C = 8.0", "C = 16.0", COMPARE),
    Mutant("compare.py", "factor * (2 * largest", "factor * (4 * largest", COMPARE),
    Mutant("compare.py", "if accuracy.ratio <= 1:", "if accuracy.ratio <= 2:", COMPARE),
    Mutant("compare.py", "if bool(misplaced.any()):", "if False:", COMPARE),
    Mutant("compare.py", "if not bool(wrong.any()):", "if True:", COMPARE),
    Mutant("compare.py", "if got.shape != want.shape:", "if False:", COMPARE),
    Mutant("compare.py", '"float32": 2.0**-24', '"float32": 2.0**-11', COMPARE),
    Mutant("compare.py", "[_widened(x) for x in inputs]", "list(inputs)", COMPARE),
    Mutant("kernel.py", "generator=self._generator, dtype=torch.float64) * scale",
           "generator=self._generator, dtype=torch.float64) * 0", JUDGING),
    # memory
    Mutant("memory.py", "self.zone, self.poison = zone, poison", "self.zone, self.poison = 0, poison", JUDGING),
    Mutant("memory.py", '("after", raw[end:])', '("after", raw[:0])', JUDGING),
    Mutant("memory.py", '("before", raw[:start])', '("before", raw[:0])', JUDGING),
    Mutant("memory.py", 'float("nan") if poison == 0 else -7.25', 'float("nan")', JUDGING),
    Mutant("memory.py", "torch.iinfo(tensor.dtype).max if poison == 0 else 91", "91", JUDGING),
    Mutant("memory.py", "                _poison(guarded, self.poison)\n", "", JUDGING),
    # executions
    Mutant("attempts.py", "self.run(order=1, poison=1)", "self.run(order=0, poison=0)", JUDGING),
    Mutant("attempts.py", "i not in self.case.mutates and not unchanged(x, p)", "False", JUDGING),
    Mutant("attempts.py", "for b in memory.breaches()", "for b in ()", JUDGING),
    Mutant("attempts.py", "and self.session.entangled:", "and False:", JUDGING),
    Mutant("attempts.py", "made = self.run(order=0, poison=0, elsewhere=True)", "made = first", JUDGING),
    Mutant("attempts.py", "        if moved and not (", "        if False and not (", JUDGING),
    Mutant("attempts.py", "            if self.case.deterministic:\n", "            if False:\n", JUDGING),
    # what is recorded
    Mutant("run.py", "outcome=worst.outcome if worst else Outcome.PASS", "outcome=Outcome.PASS", JUDGING),
    Mutant("run.py", "evidence=target.evidence,", "evidence=type(target.evidence).RAN,", JUDGING),
    Mutant("run.py", "key=lambda p: -p.outcome.severity", "key=lambda p: p.outcome.severity", JUDGING),
    Mutant("run.py", "if not session.launches and all(", "if False and all(", JUDGING),
    Mutant("run.py", "for p in check_launch(limits, launch)]", "for p in ()]", JUDGING),
    Mutant("run.py", "(session.warnings if session else [])", "[]", JUDGING),
    Mutant("model.py", "enumerate(Outcome)}", "enumerate(reversed(Outcome))}", JUDGING),
    Mutant("backend.py", "if size > most:", "if size > 2 * most:", JUDGING),
    Mutant("outcomes.py", "if FULL.search(message)", "if False", "test_hard_use", "full_disk"),
    Mutant("outcomes.py", '"SpinTimeout": Outcome.TIMEOUT', '"SpinTimeout": Outcome.UNSUPPORTED', "test_hard_use",
           "never_ends"),
    Mutant("outcomes.py", "if compiling else", "if launch else", "test_hard_use", "what_a_launch_raises"),
    Mutant("binary.py", 'NVIDIA_UNITS = ("mma", "dp2a", "dp4a")', 'NVIDIA_UNITS = ("mma", "dp2a")', "test_binary",
           "word"),
    # the interpreter
    Mutant("interpret/session.py", "if self._order == 0:", "if True:", FAULTS, "order or race"),
    Mutant("interpret/session.py", "return [chosen[i] for i in", "return chosen or [chosen[i] for i in", FAULTS,
           "order"),
    Mutant("interpret/access.py", "filling = poison(dtype.name, kind, good.shape, self.poison)",
           "filling = poison(dtype.name, kind, good.shape, 0)", FAULTS, "poison"),
    Mutant("interpret/memory.py", "np.uint64(region.extent - size)", "np.uint64(region.extent)",
           FAULTS, "past or beyond or view"),
    Mutant("interpret/memory.py", "within = lanes & (address >= region.low) &", "within = lanes &", FAULTS, "before"),
    Mutant("interpret/races.py", "return list({**self._found, **self._judged(groups)}.values())", "return []", FAULTS,
           "race or order or atomics"),
    Mutant("interpret/races.py", "ordered = reader in self._acquired and", "ordered = True or", FAULTS, "release"),
    Mutant("interpret/races.py", '[("address", int(addresses.item()))] if', "[] if", FAULTS, "a_lock_that_both_take"),
    Mutant("interpret/races.py", "NOTHING), clock)", "NOTHING), own)", FAULTS, "hands_on"),
    Mutant("interpret/races.py", "if sync is not Sync.RELAXED:", "if True:", FAULTS, "order"),
    Mutant("interpret/access.py", "if sync is Sync.OWN:", "if False:", FAULTS, "within_one_program"),
    Mutant("interpret/memory.py", 'if kind != "load" and region.gapped:', "if False:", FAULTS, "between"),
    Mutant("interpret/scan.py", "input = tuple(flipped(t, axis) for t in input)", "pass", VALUES, "back_to_front"),
    Mutant("interpret/scan.py", "self.order_matters(", "(lambda *_: None)(", FAULTS, "warning"),
    Mutant("interpret/integers.py", 'self._shifted_right(lhs, rhs, "u")', 'self._shifted_right(lhs, rhs, "i")', VALUES,
           "shift"),
    Mutant("interpret/autotune.py", "    tuner.pre_hook(given)\n", "", "test_interpret_launch", "configurations"),
    Mutant("interpret/variants.py", "return np.where(np.abs(values) < smallest,", "return values, np.where(True,",
           FAULTS, "other_targets"),
    Mutant("interpret/runtime.py", "if not self.earlier():", "if True:", FAULTS, "poll"),
    Mutant("interpret/early.py", "if not within.any():", "if True:", FAULTS, "atomics_of_others"),
    Mutant("interpret/access.py", "and not self.log.has_acquired", "", FAULTS, "atomics_of_others"),
    Mutant("interpret/variants.py", "if self.variant == FUSED and (", "if False and (", FAULTS, "other_targets"),
    Mutant("interpret/variants.py", "if self._asks(QUOTIENT,", "if False and (", FAULTS, "other_targets"),
    Mutant("interpret/reduce.py", "for swapped in (False, True):", "for swapped in (False,):", FAULTS, "place_by_hand"),
    Mutant("interpret/products.py", "checks.some((indices.data < 0) |", "checks.some((indices.data < -9) |", FAULTS,
           "gather"),
    Mutant("checks/hosts.py", "self._kept[_storage(tensor)] = tensor", "pass", "test_check_hosts"),
    Mutant("checks/hosts.py", "            if placed:\n", "            if False:\n", "test_check_hosts"),
    Mutant("interpret/runtime.py", "if self.changes == runtime.access.changes and _same(", "if False and _same(",
           FAULTS, "barrier"),
    Mutant("interpret/report.py", "self.warnings.append(", "(lambda _: None)(", FAULTS, "warning"),
    Mutant("interpret/values.py", "return _bfloat16(values, toward_zero)", "return _bfloat16(values, True)", VALUES),
    # standings, tables, files, times
    Mutant("expectations.py", "if re.search(rule.match, observation.detail):", "if True:", MATRIX),
    Mutant("expectations.py", "if outcome in rule.outcome:", "if True:", MATRIX),
    Mutant("expectations.py", "if not claimed and outcome in REFUSALS:", "if not claimed:", MATRIX),
    Mutant("expectations.py", "if _decides(observation, static):", "if True:", MATRIX),
    Mutant("expectations.py", "names_cell(r, cell) and in_range(", "in_range(", MATRIX),
    Mutant("results.py", "if version > VERSION:", "if False:", RESULTS),
    Mutant("results.py", "return 1 if unmatched or any(", "return 0 if unmatched or any(", RESULTS),
    Mutant("merge.py", "key=lambda e: e.when)[::-1]", "key=lambda e: e.when)", RESULTS),
    Mutant("merge.py", "        else max(entries, key", "        else min(entries, key", RESULTS),
    Mutant("table.py", "evidence=min((e.observation.evidence", "evidence=max((e.observation.evidence", TABLE),
    Mutant("timing.py", "stable=spread <= unstable", "stable=True", TIMING, "unstable"),
    Mutant("times.py", "if not timing.stable:", "if False:", TABLE),
    Mutant("lint/suppression.py", "if line not in self._lines:\n            return False", "return True", "test_lint"),
]  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine, its kernels and adapters, and its tests, to be changed."""
    folder = tmp_path_factory.mktemp("harness")
    left_out = shutil.ignore_patterns("__pycache__", "test_harness_mutants.py", "kernels", "backends")
    for name in ("portability", "tests/engine"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for name in ("kernels", "backends"):
        shutil.copytree(ROOT / name, folder / "portability" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/__init__.py", "pyproject.toml", "docs"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copy(source, folder / name)
    return folder


@pytest.fixture
def changed(copy: Path, mutant: Mutant) -> Iterator[Path]:
    """The copy with the mistake in it."""
    path = copy / "portability" / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.before, mutant.after, 1))
    yield copy
    path.write_text(text)


def test_each_mistake_can_still_be_made() -> None:
    gone = [f"{m.file}: {m.before!r}" for m in MUTANTS if m.before not in (ROOT / "portability" / m.file).read_text()]
    assert gone == []


@pytest.mark.slow  # a run of pytest for each mutant
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.file}-{m.before[:40].strip()}")
def test_a_mistake_in_the_harness_is_noticed(mutant: Mutant, changed: Path) -> None:
    """Exit code 1: tests ran, and one failed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    chosen = ["-k", mutant.only] if mutant.only else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *chosen,
         f"tests/engine/{mutant.tests}.py"],
        cwd=changed, env={**kept, "PYTHONPATH": str(changed), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1, f"survived: {done.stdout[-1500:]}{done.stderr[-500:]}"
