"""A cell that aborts, hangs or kills its process costs that cell and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portability.model import Evidence, Observation, Outcome

from .conftest import Project, by_cell

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


MATRIX = '[matrix]\nkernels = ["faulty.cases"]\n[matrix.limits]\nrun = 15\ncompile = 20\n'
TARGETS = ("interpreter", "cuda:86", "hip:gfx942")


def processes() -> set[str]:
    """Return the ids of all processes whose command line names a runner."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"portability.runner" in (entry / "cmdline").read_bytes():
                    found.add(entry.name)
            except OSError:
                continue
    return found


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[tuple[str, str], Observation], int, str, Project]:
    """One run of every faulty case on three targets, with two workers."""
    import shutil

    folder = tmp_path_factory.mktemp("faults")
    shutil.copytree(Path(__file__).parent / "faulty", folder / "faulty")
    (folder / "matrix.toml").write_text(MATRIX)
    project = Project(folder)
    names = ("right", "wrong", "crash", "hang", "unknown_option", "nothing", "over_limit", "assembly")
    targets = [word for t in TARGETS for word in ("--target", t)]
    run, code, said = project.run(*names, *targets, "-n", "2", "--full")
    return by_cell(run), code, said, project


EXPECTED = {
    ("right", "interpreter"): Outcome.PASS,
    ("right", "cuda:86"): Outcome.PASS,
    ("right", "hip:gfx942"): Outcome.PASS,
    ("wrong", "interpreter"): Outcome.WRONG,
    ("wrong", "cuda:86"): Outcome.PASS,  # it compiles; that is all that was seen
    ("crash", "interpreter"): Outcome.CRASH,
    ("crash", "cuda:86"): Outcome.CRASH,
    ("hang", "interpreter"): Outcome.TIMEOUT,
    ("hang", "hip:gfx942"): Outcome.TIMEOUT,
    ("unknown_option", "cuda:86"): Outcome.LAUNCH_ERROR,
    ("unknown_option", "hip:gfx942"): Outcome.LAUNCH_ERROR,
    ("nothing", "interpreter"): Outcome.LAUNCH_ERROR,
    ("nothing", "cuda:86"): Outcome.LAUNCH_ERROR,
    ("over_limit", "cuda:86"): Outcome.OUT_OF_RESOURCES,
    ("over_limit", "hip:gfx942"): Outcome.OUT_OF_RESOURCES,
    ("assembly", "cuda:86"): Outcome.PASS,
    ("assembly", "hip:gfx942"): Outcome.COMPILE_ERROR,
}


@pytest.mark.parametrize(("kernel", "target"), EXPECTED)
def test_each_fault_is_named(
    faults: tuple[dict[tuple[str, str], Observation], int, str, Project], kernel: str, target: str
) -> None:
    """Each kind of fault has its own outcome, on the target where it was seen."""
    observation = faults[0][kernel, target]
    assert observation.outcome is EXPECTED[kernel, target], observation.detail


def test_evidence_is_what_was_reached(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    """A compile-only target never says more than `compiled`."""
    found = {o.cell.target: o.evidence for o in faults[0].values()}
    assert found == {
        "interpreter": Evidence.INTERPRETED, "cuda:86": Evidence.COMPILED, "hip:gfx942": Evidence.COMPILED,
    }  # fmt: skip


def test_a_crash_names_its_signal(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    assert "SIGSEGV" in faults[0]["crash", "cuda:86"].detail


def test_a_hang_names_its_line(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    assert faults[0]["hang", "interpreter"].line.startswith("faulty/cases.py:")


def test_a_resource_error_says_how_much(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    """What was refused comes with what it needs and what there is."""
    observation = faults[0]["over_limit", "hip:gfx942"]
    needed = observation.resources[0]
    assert needed.shared is not None
    assert needed.shared_limit == 65536
    assert needed.shared > needed.shared_limit


def test_findings_give_exit_code_1(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    assert faults[1] == 1, faults[2]


def test_no_file_is_left(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    """Killed runners leave nothing in the temporary folder."""
    pytests_own = {n for n in os.listdir(faults[3].temporary) if n.startswith("pytest-of-")}
    assert set(os.listdir(faults[3].temporary)) == pytests_own


def test_no_process_is_left(faults: tuple[dict[tuple[str, str], Observation], int, str, Project]) -> None:
    """No runner of that run goes on."""
    mine = [p for p in processes() if str(faults[3].folder) in _environment(p)]
    assert mine == []


def _environment(process: str) -> str:
    try:
        return Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        return ""


def test_a_compile_error_is_kept_on_a_warm_cache(project: Callable[[str], Project]) -> None:
    """What the compiler said when it made a binary is said again when the binary comes from the cache."""
    made = project(MATRIX)
    cache = {"PORTABILITY_CACHE": str(made.folder / "cache")}
    outcomes = []
    for _ in range(2):
        results = made.folder / "results.jsonl"
        made.portability("run", "assembly", "--target", "hip:gfx942", "-n0", "--results", str(results), variables=cache)
        from portability.results import read_run

        (observation,) = read_run(results).observations
        outcomes.append((observation.outcome, "error:" in observation.detail))
        results.unlink()
    assert outcomes == [(Outcome.COMPILE_ERROR, True)] * 2
