"""Writing a run's file as the run goes on, so that whatever ends the run, its finished cells are kept."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from portability.model import Cell, Observation
from portability.results import (
    Header,
    Provenance,
    ResultsError,
    footer_line,
    header_line,
    observation_line,
    read_run,
    write_runs,
)

SYNC_SECONDS = 1.0  # at most so much is lost with the machine itself; a killed process loses nothing

# What must be equal for a run to be gone on with: else its file would claim one origin for observations of two.
SAME = ("os", "python", "torch", "triton", "driver", "devices", "commit", "knobs", "seed")


class Writer:
    """One run's file: the header on opening, a line an observation, a footer on `finish`.

    A context manager, which closes the file; without `finish` the run counts as interrupted. Raises `ResultsError`
    naming the file if it cannot be written; the lines that were written before stay whole. `held` says that the file
    is there, with the header and these observations in it (see `resume`).
    """

    def __init__(self, path: Path, header: Header, held: Sequence[Observation] | None = None) -> None:
        self.path = path
        self.header = header
        self.observations: dict[Cell, Observation] = {o.cell: o for o in held or ()}
        self._synced = time.monotonic()
        self._file = self._open(fresh=held is None)
        self._size = os.fstat(self._file).st_size
        if held is None:
            try:
                self._write(header_line(header))
            except ResultsError:
                self.close()
                raise

    @classmethod
    def resume(cls, path: Path, header: Header | None = None) -> Writer:
        """Open an interrupted run to go on with it; `observations` holds what it has.

        A torn last line and a footer are dropped. `header` is the one that a new run would have: the file takes over
        its selection and expectations and keeps its own name and start. A file that was made with other versions,
        another commit or other devices is refused by a `ResultsError` that says what differs.
        """
        run = read_run(path)
        os.close(_claimed(path, os.O_WRONLY))
        if header is not None:
            old, new = run.header.provenance, header.provenance
            _check_same(path, old, new)
            provenance = dataclasses.replace(new, started=old.started)
            header = dataclasses.replace(header, run=run.header.run, provenance=provenance)
            run = dataclasses.replace(run, header=header)
        whole = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            write_runs(whole, [dataclasses.replace(run, footer=None)])
            whole.replace(path)
        except OSError as error:
            raise ResultsError(f"{path}: cannot be written: {error.strerror or error}") from error
        finally:
            whole.unlink(missing_ok=True)
        return cls(path, run.header, run.observations)

    def write(self, observation: Observation) -> None:
        """Append one observation; it is in the file when this returns."""
        self._write(observation_line(observation))
        self.observations[observation.cell] = observation
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()

    def finish(self, when: str) -> None:
        """Append the footer; `when` is UTC in ISO 8601."""
        self._write(footer_line(when, self.observations.values()))
        self._sync()

    def close(self) -> None:
        """Close the file; more than once does no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, fresh: bool) -> int:
        """Open the file for this run alone, and empty it if it is `fresh`: not before nobody else writes it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            descriptor = _claimed(self.path, flags)
            if fresh and os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, 0)
            return descriptor
        except OSError as error:
            raise self._failed(error) from error

    def _write(self, line: str) -> None:
        data = memoryview(line.encode("ascii"))
        end = self._size + len(data)
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            with contextlib.suppress(OSError):  # a reader tolerates the torn line that stays where even this fails
                self._truncate()
            raise self._failed(error) from error
        self._size = end

    def _truncate(self) -> None:
        os.ftruncate(self._file, self._size)

    def _sync(self) -> None:
        try:
            os.fsync(self._file)
        except OSError as error:  # where a full disk shows on some file systems
            raise self._failed(error) from error
        self._synced = time.monotonic()

    def _failed(self, error: OSError) -> ResultsError:
        kept = f"; {len(self.observations)} finished observations are kept in it" if self.observations else ""
        return ResultsError(f"{self.path}: cannot be written: {error.strerror or error}{kept}")


def _check_same(path: Path, old: Provenance, new: Provenance) -> None:
    differing = [n for n in SAME if getattr(old, n) != getattr(new, n)]
    if differing:
        pairs = (f"{n} was {getattr(old, n)!r} and is {getattr(new, n)!r}" for n in differing)
        raise ResultsError(f"{path}: cannot be resumed here: {'; '.join(pairs)}")


def _claimed(path: Path, flags: int) -> int:
    """Open a file for one writer: until it is closed, others are refused by a `ResultsError`. Raises `OSError` too."""
    descriptor = os.open(path, flags, 0o644)
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ResultsError(f"{path}: another run is writing it; --results names another file") from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):  # a file system without locks is written as it is
                os.close(descriptor)
                raise
    return descriptor
