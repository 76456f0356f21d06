"""What the checked interpreter found, and on which line of the kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType

import numpy
import triton

from portability.backend import Problem
from portability.kernel import relative
from portability.model import Finding, Outcome

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_CHECKS = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "checks") + os.sep
# Frames of these are between the kernel's line and the place that noticed something.
_BETWEEN = (_HERE, _CHECKS, os.path.dirname(triton.__file__) + os.sep, os.path.dirname(numpy.__file__) + os.sep, "<")


class Unsupported(Exception):
    """The interpreter says by name that it cannot do this."""


class SpinTimeout(Exception):
    """A program waits for something that cannot happen while programs run one after another.

    `line` is the kernel's own line, "file:line".
    """

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(f"{message} ({line})" if line else message)
        self.line = line


class Report:
    """Problems and warnings of a session, each once per code and line of the kernel.

    `kernel`, `definition` and `program` are of the launch that is being run.
    """

    def __init__(self, problems: list[Problem], warnings: list[Finding]) -> None:
        self.problems = problems
        self.warnings = warnings
        self.kernel = ""
        self.definition = ("", 0)  # file and line of the kernel's def
        self.program = (0, 0, 0)
        self._seen: set[tuple[str, tuple[str, int], tuple[str, ...]]] = set()

    def warn(self, code: str, message: str, targets: Sequence[str] = ()) -> None:
        """Record a warning at the kernel's current line, or at the launch's where none runs."""
        place = self.place()
        if self._first(code, place, tuple(targets)):
            self.warnings.append(Finding(code, f"{self.kernel}: {message}", written(place), tuple(targets)))

    def warns(self, code: str) -> bool:
        """Return whether a warning of this code would be new at the current line; for what is dear to find out."""
        place = self.place()
        return not any(key[:2] == (code, place) for key in self._seen)

    def problem(self, outcome: Outcome, code: str, message: str) -> None:
        """Record what decides the outcome, at the kernel's current line."""
        place = self.place()
        if self._first(code, place, ()):
            message = f"{self.kernel}: {message}, program {self.program}"
            self.problems.append(Problem(outcome, code, message, written(place)))

    def place(self) -> tuple[str, int]:
        """Return file and line of the innermost frame of the user's own code, else where the kernel is defined."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(_BETWEEN):
                return code.co_filename, frame.f_lineno
            if code.co_name == "run_program" and code.co_filename.startswith(_HERE):
                break  # what lies further out launched the kernel
            frame = frame.f_back
        return self.definition

    def _first(self, code: str, place: tuple[str, int], targets: tuple[str, ...]) -> bool:
        key = (code, place, targets)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def written(place: tuple[str, int]) -> str:
    """Return "kernels/matmul.py:41" for a file and line."""
    return f"{relative(place[0], Path.cwd())}:{place[1]}" if place[0] else ""


def raised_at(trace: TracebackType | None, default: tuple[str, int]) -> tuple[str, int]:
    """Return file and line of the innermost frame of the user's own code inside the launch, from a traceback."""
    place, inside = default, False
    while trace is not None:
        code = trace.tb_frame.f_code
        inside = inside or (code.co_name == "run_program" and code.co_filename.startswith(_HERE))
        if inside and not code.co_filename.startswith(_BETWEEN):
            place = code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return place
