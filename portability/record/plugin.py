"""`--portability-record FILE`: a pytest run whose Triton launches are recorded, in any project, with or without xdist.

Every process writes a part of its own; the one that started the others joins them into FILE.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from portability.record.session import Session

WORKER = "PYTEST_XDIST_WORKER"  # set in a worker, which is handed its input only after its conftests are loaded
NAME = "portability-recording"
OWN = ("--portability-record", "--portability-record-target")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options. They are long, and nobody else's."""
    group = parser.getgroup("portability-record", "Triton launches, recorded")
    group.addoption(
        "--portability-record", metavar="FILE", dest="portability_record",
        help="record every Triton launch into FILE, for `portability check FILE`",
    )  # fmt: skip
    group.addoption(
        "--portability-record-target", metavar="T", default="", dest="portability_record_target",
        help="launch into nothing for this target; default: the device that is here, else cuda:90 into nothing",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any module of the project is imported: it may ask for a device while it is."""
    option = early_config.known_args_namespace
    if not getattr(option, "portability_record", None):
        return
    from portability.record.session import Session, clear, part_of

    path = Path(option.portability_record).absolute()
    try:
        if WORKER not in os.environ:
            clear(path)
        program = ("pytest", *_others(early_config.invocation_params.args))
        session = Session(option.portability_record_target, program, part_of(path))
        session.start()
    except (ValueError, OSError) as error:
        raise pytest.UsageError(f"--portability-record: {error}") from None
    early_config.pluginmanager.register(Recording(session, path), NAME)


def _others(words: Sequence[str]) -> Iterator[str]:
    """Yield pytest's arguments without those that record: recordings for two targets are of one program."""
    left = iter(words)
    for word in left:
        if word in OWN:
            next(left, None)
        elif not word.startswith(tuple(f"{name}=" for name in OWN)):
            yield word


class Recording:
    """The recording of one process."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session, self.path = session, path
        self._said = ""
        self._worker = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """Learn whether this is a worker, which joins nothing."""
        self._worker = hasattr(config, "workerinput")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Say whose launches they are."""
        self.session.recorder.test = item.nodeid
        try:
            return (yield)
        finally:
            self.session.recorder.test = ""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write; the controller comes after its workers, and joins."""
        self.session.write()
        if self._worker:
            return
        from portability.record.session import join

        made = join(self.path)
        assert made is not None, "this process has written a part"
        self._said = f"{made.summary} in {self.path}"

    def pytest_unconfigure(self) -> None:
        """Leave Triton and torch as they were."""
        self.session.stop()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was recorded."""
        if not self._said:
            return
        terminalreporter.write_line(self._said)
        if not self.session.ran:
            terminalreporter.write_line(
                "nothing was computed, and comparisons were taken to hold: passing says nothing"
            )
