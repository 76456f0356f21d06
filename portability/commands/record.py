"""Record every Triton launch of an unmodified program, for `portability check FILE`.

    portability record -o launches.json -- pytest tests/
    portability record -o launches.json --target hip:gfx942 -- driver.py --size 128

PROGRAM is `pytest` with its arguments, or what follows `python`: a file, -m MODULE, -c CODE. Where a device is here its
launches happen as ever; elsewhere, or for --target, they go into nothing, on CPU tensors that answer as the device's.

Exit code: the program's own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGE_PARENT = Path(__file__).resolve().parents[2]
SIGNALLED = 128  # a shell's exit code of a program that a signal ended is this and the signal's number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.usage = "portability record [-o FILE] [--target T] -- PROGRAM …"
    parser.add_argument("-o", "--output", type=Path, default=Path("launches.json"), metavar="FILE")
    parser.add_argument(
        "--target", default="", metavar="T",
        help="launch into nothing for this target (default: the device that is here, else cuda:90 into nothing)",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Run the program; say what was recorded."""
    return record(args.rest, args.output.absolute(), args.target)


def record(program: Sequence[str], path: Path, target: str = "", quiet: bool = False) -> int:
    """Run `program`, record into `path`, and return its exit code; `quiet` sends what it prints to standard error.

    Raises `ValueError` where there is nothing to run or no such target, `OSError` where nothing can be written,
    `RuntimeError` where nothing was recorded.
    """
    from portability.record.session import clear, join, known_target

    command = command_of(program, path, target)
    known_target(target)
    clear(path)
    paths = [str(PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    out = sys.stderr if quiet else None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environment, stdout=out, check=False)
    made = None if path.exists() else join(path)  # pytest joins what it recorded, unless it was ended
    if made is None and not path.exists():
        raise RuntimeError(f"{' '.join(program)}: {ending(done.returncode)}, and nothing was recorded")
    if done.returncode < 0:
        said = f"the program {ending(done.returncode)}; what it launched until then is recorded"
        print(f"portability record: {said}", file=sys.stderr)
    if made is not None:
        print(f"{made.summary} in {path}", file=out)
    return done.returncode if done.returncode >= 0 else SIGNALLED - done.returncode


def ending(code: int) -> str:
    """Return how a process ended, in words, by its return code: below 0 it is the signal's."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def command_of(program: Sequence[str], path: Path, target: str) -> list[str]:
    """Return what records `program` into `path`, or into a part of it that is joined afterwards."""
    words = list(program)
    python = sys.executable
    if words and Path(words[0]).name.startswith("python"):
        python = shutil.which(words.pop(0)) or python
    if words[:2] == ["-m", "pytest"]:
        words = ["pytest", *words[2:]]
    if not words:
        raise ValueError("no program; `portability record -o launches.json -- pytest tests/` is one")
    if Path(words[0]).name in ("pytest", "py.test"):
        own = ["-p", "portability.record.plugin", "--portability-record", str(path)]
        own += ["--portability-record-target", target] if target else []
        return [python, "-m", "pytest", *own, *words[1:]]
    if words[0] in ("-m", "-c"):
        if len(words) == 1:
            raise ValueError(f"{words[0]}: {'a module' if words[0] == '-m' else 'code'} is needed after it")
    elif not Path(words[0]).is_file():
        what = "no option that is known" if words[0].startswith("-") else "no such Python file"
        raise ValueError(f"{words[0]}: {what}; PROGRAM is pytest …, FILE.py …, -m MODULE … or -c CODE")
    return [python, "-m", "portability.record.program", str(path), target, "--", *words]
