"""pytest glue: options, cells as tests, evidence in pytest's own words, and one results file a run.

It registers nothing where no `matrix.toml` is found. Workers of pytest-xdist are handed the catalogue by the
controller, run cells, and write nothing; the controller keeps the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from portability.model import Cell, Evidence, Observation, Outcome, Standing, from_json

if TYPE_CHECKING:
    from portability.harness import Harness, Server
    from portability.writer import Writer

pytest_plugins = ("portability.record.plugin",)  # its option is of use in projects without a matrix.toml too
PROGRESS_SECONDS = 30.0  # between two words on how far a run is
MATRIX = "PORTABILITY_MATRIX"  # a path, for a project that keeps its matrix.toml elsewhere
WORDS = {  # evidence -> pytest's category, letter and word
    Evidence.RAN: ("ran", "R", "RAN"),
    Evidence.EMULATED: ("emulated", "E", "EMULATED"),
    Evidence.INTERPRETED: ("interpreted", "i", "INTERPRETED"),
    Evidence.COMPILED: ("compiled", "c", "COMPILED"),
    Evidence.LOWERED: ("lowered", "l", "LOWERED"),
}


def find_matrix(start: Path) -> Path | None:
    """Return the project's matrix.toml: the one that the variable names, or the nearest at or above `start`."""
    named = os.environ.get(MATRIX)
    if named:
        return Path(named)
    return next((f for d in (start, *start.parents) if (f := d / "matrix.toml").is_file()), None)


def new_results(root: Path) -> Path:
    """Return a new name for a results file of the project at `root`."""
    return root / ".portability" / f"{datetime.now(timezone.utc):%Y-%m-%dT%H%M%S}-{os.getpid()}.jsonl"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the matrix, in a project that has one."""
    if find_matrix(Path.cwd()) is None:
        return
    group = parser.getgroup("portability", "Triton kernels on every backend")
    for name, what in (("kernel", "kernels"), ("backend", "backends"), ("target", "targets"), ("dtype", "dtypes")):
        group.addoption(
            f"--{name}", action="append", default=[], metavar=name[0].upper(), dest=f"portability_{name}",
            help=f"only these {what}; a pattern may hold * (repeatable)",
        )  # fmt: skip
    group.addoption(
        "--environment", action="append", default=[], metavar="E", dest="portability_environment",
        help="only cells of this environment: 'default', or one of `portability env list` (repeatable)",
    )  # fmt: skip
    group.addoption(
        "--full",
        action="store_true",
        dest="portability_full",
        help="every sample, dtype and probe everywhere: --samples full",
    )
    group.addoption(
        "--samples", choices=("quick", "default", "full"), dest="portability_samples",
        help="quick: one sample everywhere; default: every one where values are computed; full: every one everywhere",
    )  # fmt: skip
    group.addoption(
        "--in-process", action="store_true", dest="portability_in_process",
        help="run cells in pytest's own process, where a breakpoint in a kernel stops; one target, no -n",
    )  # fmt: skip
    group.addoption("--no-timing", action="store_true", dest="portability_no_timing", help="leave bench samples out")
    group.addoption(
        "--warmup-ms", type=float, default=25.0, dest="portability_warmup_ms", help="before a time is taken"
    )
    group.addoption("--rep-ms", type=float, default=100.0, dest="portability_rep_ms", help="while a time is taken")
    group.addoption("--seed", type=int, default=0, dest="portability_seed", help="of the inputs' values")
    group.addoption(
        "--results", dest="portability_results", metavar="FILE", help="where to write this run's JSON Lines"
    )
    group.addoption("--resume", dest="portability_resume", metavar="FILE", help="go on with an interrupted run's file")


def pytest_configure(config: pytest.Config) -> None:
    """Register the state of this process, and the marks."""
    path = find_matrix(Path.cwd())
    if path is None or not hasattr(config.option, "portability_full"):
        return
    for evidence in WORDS.values():
        config.addinivalue_line("markers", f"{evidence[0]}: cells whose evidence is '{evidence[0]}'")
    config.addinivalue_line("markers", "bench: cells that are timed")
    state = State(config, path)
    for name in state.harness.adapters:
        config.addinivalue_line("markers", f"{name}: cells of the backend '{name}'")
    config.pluginmanager.register(state, "portability-state")


@pytest.fixture(scope="session")
def portability_harness(request: pytest.FixtureRequest) -> Any:
    """What runs the cells of this process."""
    return request.config.pluginmanager.getplugin("portability-state").runs_cells()


class State:
    """What one process of a pytest run knows: the harness, and in the controller the results file."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        from portability.backend import discover
        from portability.harness import Harness
        from portability.matrix import MatrixError, read_matrix
        from portability.paths import importable
        from portability.pool import temporary_folder

        self.config = config
        self._exit = contextlib.ExitStack()
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        option = config.option
        options = {
            "seed": option.portability_seed, "timing": not option.portability_no_timing,
            "warmup_ms": option.portability_warmup_ms, "rep_ms": option.portability_rep_ms,
        }  # fmt: skip
        folder = (
            Path(self.worker["portability_folder"]) if self.worker else self._exit.enter_context(temporary_folder())
        )
        self.folder = folder
        try:
            matrix = read_matrix(path)
            importable(path.parent)  # before its adapters are looked for
            own = {backend.environment for backend in discover(matrix.backends).values()}
            matrix = matrix.with_environments(option.portability_environment, own)
            self.harness: Harness = Harness(matrix, folder, path.parent.resolve(), options)
        except (MatrixError, ValueError, LookupError) as error:
            raise pytest.UsageError(str(error)) from None
        self.harness.one_of_many = self.worker is not None
        self.server: Server | None = None
        self.writer: Writer | None = None
        self.interrupted = False
        self._kept = 0
        self._began = self._spoke = time.monotonic()
        self._cells: dict[str, Cell] = {}

    # --------------------------------------------------------------------------------------------- collection

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Turn the one test into one for each cell."""
        if "portability_cell" not in metafunc.fixturenames:
            return
        cells = self.cells()
        metafunc.parametrize("portability_cell", [pytest.param(c, id=c.id, marks=self._marks(c)) for c in cells])

    def cells(self) -> list[Cell]:
        """Return the cells that the command line selects. Raises `pytest.UsageError` for a name that is nothing."""
        from portability import catalogue as catalogues
        from portability.matrix import MatrixError

        try:
            self._learn()
            selection = self._selection()
            catalogues.check(selection, self.harness.catalogue, self.harness.adapters)
        except (MatrixError, RuntimeError) as error:
            raise pytest.UsageError(str(error)) from None
        made = catalogues.cells(self.harness.catalogue, self.harness.matrix, selection, self.harness.adapters)
        finished = self._finished()
        self._cells = {c.id: c for c in made if c.id not in finished}
        return list(self._cells.values())

    def _learn(self) -> None:
        """Take the catalogue that the controller was told; a controller asks."""
        from portability import catalogue as catalogues

        if self.worker is not None:
            self.harness.adopt(catalogues.from_text(self.worker["portability_catalogue"]))
            if self.worker["portability_socket"] and self.harness.device is None:
                from portability.harness import Client

                self.harness.device = Client(self.worker["portability_socket"])

    def _selection(self) -> Any:
        from portability.catalogue import Selection
        from portability.matrix import Samples

        option = self.config.option
        chosen = "full" if option.portability_full else option.portability_samples
        samples = Samples(chosen) if chosen else self.harness.matrix.samples
        return Selection(
            tuple(option.portability_kernel), tuple(option.portability_backend), tuple(option.portability_target),
            tuple(option.portability_dtype), samples, not option.portability_no_timing,
            tuple(option.portability_environment),
        )  # fmt: skip

    def _finished(self) -> set[str]:
        if self.worker is not None:
            return set(self.worker["portability_finished"])
        if not self.config.option.portability_resume:
            return set()
        from portability.results import ResultsError, read_run

        try:
            return {o.cell.id for o in read_run(Path(self.config.option.portability_resume)).observations}
        except ResultsError as error:
            pytest.exit(f"--resume: {error}", returncode=pytest.ExitCode.USAGE_ERROR)

    def _marks(self, cell: Cell) -> list[pytest.MarkDecorator]:
        target = self.harness.catalogue.target(cell)
        marks = [getattr(pytest.mark, target.backend)]
        if target.evidence in WORDS:
            marks.append(getattr(pytest.mark, WORDS[target.evidence][0]))
        if any(s.name == cell.sample and s.bench for s in self.harness.catalogue.case(cell.kernel).samples):
            marks.append(pytest.mark.bench)
        return marks

    # ------------------------------------------------------------------------------------------------ running

    def runs_cells(self) -> Any:
        """Return what runs cells here: the harness, or its stand-in within this process."""
        if not self.config.option.portability_in_process:
            return self.harness
        from portability.inprocess import InProcess

        targets = {c.target for c in self._cells.values()}
        if len(targets) > 1 or self.worker is not None:
            raise pytest.UsageError(f"--in-process takes one target and no -n; there are {', '.join(sorted(targets))}")
        return InProcess(self.harness)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand a worker what the controller was told (pytest-xdist, in the controller)."""
        from portability import catalogue as catalogues
        from portability.harness import Server

        try:
            catalogue = self.harness.catalogue
        except (ValueError, RuntimeError) as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        if self.server is None and any(t.evidence is Evidence.RAN for t in catalogue.targets):
            self.server = Server(self.harness.run, self.folder)
        node.workerinput["portability_catalogue"] = catalogues.to_text(catalogue)
        node.workerinput["portability_folder"] = str(self.folder)
        node.workerinput["portability_socket"] = str(self.server.path) if self.server else ""
        node.workerinput["portability_finished"] = sorted(self._finished())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep each observation as it comes (in the controller, or where there are no workers)."""
        if self.worker is not None:
            return
        line = dict(report.user_properties).get("observation")
        if report.when == "call" and isinstance(line, str):
            self._keep(from_json(Observation, json.loads(line)))
        elif report.when not in ("setup", "call", "teardown"):  # xdist's word for a worker that died
            cell = self._cell_of(report.nodeid)
            if cell is not None:
                target = self.harness.catalogue.target(cell)
                self._keep(
                    Observation(cell, target.evidence, Outcome.CRASH, "run", "the pytest worker died with this cell")
                )

    def _cell_of(self, nodeid: str) -> Cell | None:
        if not self._cells:
            self.cells()
        return self._cells.get(nodeid.partition("[")[2].removesuffix("]"))

    def _keep(self, observation: Observation) -> None:
        from portability.results import ResultsError

        try:
            if self.writer is None:
                self.writer = self._open_results()
            self.writer.write(observation)
            self._say_how_far()
        except ResultsError as error:  # a full disk: what is written stays, and going on would only lose more
            self.interrupted = True
            pytest.exit(str(error), returncode=pytest.ExitCode.INTERRUPTED)

    def _say_how_far(self) -> None:
        """Say now and then how many cells are done and how long the rest will take, at the pace so far."""
        self._kept += 1
        now = time.monotonic()
        if now - self._spoke < PROGRESS_SECONDS:
            return
        self._spoke = now
        total = max(len(self._cells), self._kept)
        left = (now - self._began) / self._kept * (total - self._kept)
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            rest = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
            reporter.write_line(f" {self._kept} of {total} cells, about {rest} left")

    def _open_results(self) -> Writer:
        from portability import provenance
        from portability.results import Selection as Recorded
        from portability.writer import Writer

        if not self._cells:
            self.cells()  # a controller collects nothing: its workers do
        self._began = time.monotonic()
        option, asked = self.config.option, self._selection()
        expression = " ".join(
            f"{flag} {value}" for flag, value in (("-k", option.keyword), ("-m", option.markexpr)) if value
        )
        recorded = Recorded(
            asked.kernels, asked.backends, asked.targets, asked.dtypes, str(asked.samples), asked.timing, expression,
            len(self._cells), asked.environments,
        )  # fmt: skip
        header = provenance.header_of(self.harness, recorded, option.portability_seed)
        if option.portability_resume:
            return Writer.resume(Path(option.portability_resume), header)
        return Writer(Path(option.portability_results or new_results(self.harness.root)), header)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Say `compiled`, `interpreted` and `ran` where pytest would say `passed`."""
        found = dict(getattr(report, "user_properties", ()))  # a report of a failed collection has none
        if report.when != "call" or not report.passed or "evidence" not in found:
            return None
        if found["outcome"] != Outcome.PASS:
            word = "as declared" if found["standing"] == Standing.AS_EXPECTED else "unknown"
            return word, "x", f"{word.upper()} ({found['outcome']})"
        return WORDS[Evidence(found["evidence"])]

    # ---------------------------------------------------------------------------------------------- the end

    def pytest_keyboard_interrupt(self) -> None:
        """Leave the file without its footer: `--resume` goes on with it."""
        self.interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """End runners, and the file with its footer."""
        from portability.provenance import now

        if self.worker is None and self.writer is not None:
            if not self.interrupted:
                self.writer.finish(now())
            self.writer.close()
        if self.server is not None:
            self.server.close()
        self.harness.close()
        self._exit.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the results are and how to read them, and what was left out."""
        if self.worker is not None or self.writer is None:
            return
        file = os.path.relpath(self.writer.path)
        terminalreporter.write_line(f"results in {file}; the table: portability table {file}")
        if not self.config.option.portability_full:
            chosen = self._selection().samples
            terminalreporter.write_line(f"the {chosen} samples; more: --samples default, or --full for everything")
        for module, error in self.harness.catalogue.errors.items():
            terminalreporter.write_line(f"not collected: {module}: {error}", red=True)
