"""One process that records: started before the program's modules are imported, written when it ends.

Processes of one program write beside each other (`FILE.PID.part`), and whoever started them joins the parts.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from portability.record.model import Recording, RecordingError, merge, read, write
from portability.record.nowhere import adapter_of, into_nothing
from portability.record.recorder import Recorder

DEFAULT = "cuda:90"  # what a program is told of where nothing is asked and no device is here
REAL = "device"  # asks for real launches
EVERY, SHARE = 1.0, 0.02  # what is kept while a program runs: seconds between, and the share of the time that it takes


def device_target() -> str:
    """Return the target of the device that torch would use, empty where there is none."""
    from portability.backend import discover

    for adapter in discover().values():
        if adapter.device != "cpu":
            with contextlib.suppress(LookupError):
                return adapter.device_target(0)
    return ""


def known_target(target: str) -> None:
    """Raise `ValueError`, naming the choices, for what launches cannot be recorded for."""
    if target == REAL:
        if not device_target():
            raise ValueError(f"target {REAL!r}: there is no device here that torch is built for")
    elif target:
        adapter_of(target)


class Session:
    """A recorder, and where it launches. `target` is empty for the device that is here, or the default one.

    `part` is the file of this process. It is written while the program runs, too, since some end by a signal.
    """

    def __init__(self, target: str = "", program: tuple[str, ...] = (), part: Path | None = None) -> None:
        known_target(target)
        here = device_target() if target in ("", REAL) else ""
        self.target = here or target or DEFAULT
        self.ran = bool(here)
        self.part = part
        self.recorder = Recorder(self.target, self.ran, program, None if part is None else self._keep)
        self._next = 0.0  # when it is written again, in seconds of the monotonic clock
        self._exit = contextlib.ExitStack()

    def start(self) -> None:
        """Begin to record."""
        if not self.ran:
            self._exit.enter_context(into_nothing(self.target))
        self.recorder.start()

    def stop(self) -> None:
        """Leave Triton and torch as they were."""
        self.recorder.stop()
        self._exit.close()

    def write(self) -> None:
        """Write what was recorded so far. Raises `RecordingError`."""
        assert self.part is not None, "a session that writes is told where"
        began = time.monotonic()
        write(self.part, self.recorder.recording())
        self._next = (now := time.monotonic()) + max(EVERY, (now - began) / SHARE)

    def _keep(self) -> None:
        """Write now and then, as launches come that are new."""
        if time.monotonic() >= self._next:
            with contextlib.suppress(RecordingError):  # said in the end, and not within the program
                self.write()


def part_of(path: Path, name: str = "") -> Path:
    """Return where one process of a program that is recorded into `path` writes."""
    return path.with_name(f"{path.name}.{name or os.getpid()}.part")


def join(path: Path) -> Recording | None:
    """Join the parts beside `path` into it, and remove them; `None` where no process wrote any."""
    parts = sorted(path.parent.glob(f"{path.name}.*.part"))
    if not parts:
        return None
    made = merge([read(part) for part in parts])
    write(path, made)
    for part in parts:
        part.unlink()
    return made


def clear(path: Path) -> None:
    """Remove what an earlier recording into `path` left behind. Raises `OSError` where that is not allowed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    tried = part_of(path)
    tried.touch()
    tried.unlink()
    for part in path.parent.glob(f"{path.name}.*.part"):
        part.unlink()
