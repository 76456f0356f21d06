"""One process that records: started before the program's modules are imported, written when it ends.

Processes of one program write beside each other (`FILE.PID.part`), and whoever started them joins the parts.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from portability.record.model import Recording, merge, read, write
from portability.record.nowhere import adapter_of, into_nothing
from portability.record.recorder import Recorder

DEFAULT = "cuda:90"  # what a program is told of where nothing is asked and no device is here
REAL = "device"  # asks for real launches


def device_target() -> str:
    """Return the target of the device that torch would use, empty where there is none."""
    from portability.backend import discover

    for adapter in discover().values():
        if adapter.device != "cpu":
            with contextlib.suppress(LookupError):
                return adapter.device_target(0)
    return ""


class Session:
    """A recorder, and where it launches. `target` is empty for the device that is here, or the default one."""

    def __init__(self, target: str = "", program: tuple[str, ...] = ()) -> None:
        here = device_target() if target in ("", REAL) else ""
        if target == REAL and not here:
            raise ValueError(f"target {REAL!r}: there is no device here that torch is built for")
        self.target = here or target or DEFAULT
        self.ran = bool(here)
        self.recorder = Recorder(self.target, self.ran, program)
        self._exit = contextlib.ExitStack()

    def start(self) -> None:
        """Begin to record. Raises `ValueError` for a target that is nothing."""
        if not self.ran:
            adapter_of(self.target)
            self._exit.enter_context(into_nothing(self.target))
        self.recorder.start()

    def stop(self) -> None:
        """Leave Triton and torch as they were."""
        self.recorder.stop()
        self._exit.close()

    def write(self, part: Path) -> None:
        """Write what was recorded so far."""
        write(part, self.recorder.recording())


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
    for part in path.parent.glob(f"{path.name}.*.part"):
        part.unlink()
