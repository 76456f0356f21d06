"""`python -m portability.record.program FILE TARGET -- PROGRAM …`: run a Python program and record its launches.

PROGRAM is a file, `-m MODULE`, or `-c CODE`, with its arguments, as after `python`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from portability.record.session import Session, part_of

STARTED_BY = (__file__, runpy.__file__, "<frozen runpy>")


def main(argv: Sequence[str]) -> int:
    """Run the program as `__main__`; return its exit code. What it raises is told as Python tells it."""
    file, target, _, *program = argv
    session = Session(target, tuple(program), part_of(Path(file)))
    session.start()
    try:
        return _run(program)
    except Exception as error:
        error.__traceback__ = _its_own(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        session.stop()
        session.write()


def _its_own(traceback: TracebackType | None) -> TracebackType | None:
    """Leave out how the program was started."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename in STARTED_BY:
        traceback = traceback.tb_next
    return traceback


def _run(program: Sequence[str]) -> int:
    head, *rest = program
    try:
        if head == "-c":
            sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
        elif head == "-m":
            sys.argv, sys.path[0] = rest, ""
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = [head, *rest], str(Path(head).resolve().parent)
            runpy.run_path(head, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
