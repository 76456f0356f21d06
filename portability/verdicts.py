"""What the compiler wrote while it made a binary, kept beside it: with a warm cache nothing is printed any more.

What is touched of Triton, 3.6 to 3.9: `knobs.compilation.always_compile`, which is put back.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from portability.backend import Launch

VERDICT = "portability.json"  # beside the cached binary: what the compiler said when it was made
ERROR_LINE = re.compile(r"^.*?\berror:.*$", re.MULTILINE | re.IGNORECASE)


class CompilerSaidError(RuntimeError):
    """The compiler returned a binary and printed an error: the binary is not what was written."""


class _CachedWithoutVerdict(Exception):
    """A binary is in the cache, but not what the compiler said of it."""


class Compiler:
    """Runs a launch, and keeps what the compiler wrote beside the binary that it made: it must outlive the process.

    Its `listener` is to be `knobs.compilation.listener` meanwhile.
    """

    verdicts: dict[str, Mapping[str, Any]] = {}  # noqa: RUF012 - by hash, of this process: its in-memory cache too

    def __init__(self) -> None:
        self.told = ""  # the hash of what the last call compiled or took from the cache on disk
        self._capture: Capture | None = None
        self._started = 0.0

    def call(self, run: Callable[[], Any], launch: Launch) -> Any:
        """Return what `run` launched, with what the compiler said of it in `launch`: now, or when it made it."""
        from triton import knobs

        self.told = ""
        try:
            compiled = self._captured(run, launch)
        except _CachedWithoutVerdict:
            always, knobs.compilation.always_compile = knobs.compilation.always_compile, True
            try:
                compiled = self._captured(run, launch)
            finally:
                knobs.compilation.always_compile = always
        verdict = self.verdicts.get(getattr(compiled, "hash", ""), {})
        launch.stderr = launch.stderr or str(verdict.get("stderr", ""))
        launch.ptxas = str(verdict.get("ptxas", ""))
        launch.compile_seconds = float(verdict.get("seconds", 0.0))
        return compiled

    def _captured(self, run: Callable[[], Any], launch: Launch) -> Any:
        with Capture() as self._capture:
            self._started = time.perf_counter()
            try:
                return run()
            except _CachedWithoutVerdict:
                raise
            except Exception:  # of whatever kind: it is raised again, with what the compiler wrote kept beside it
                launch.stderr = self._capture.stderr()
                raise

    def listener(
        self, *, src: Any, metadata: Any, metadata_group: Mapping[str, str], times: Any, cache_hit: bool
    ) -> None:
        """Write what was said of a new binary beside it, or read what was; raise where that is missing."""
        name = self.told = metadata["hash"]
        path = Path(next(p for p in metadata_group.values() if p.endswith(".json"))).parent / VERDICT
        if cache_hit:
            try:
                self.verdicts[name] = json.loads(path.read_text())
            except (OSError, ValueError):
                raise _CachedWithoutVerdict from None
            return
        capture = self._capture
        assert capture is not None, "the listener is called inside a launch"
        verdict = {
            "stderr": capture.stderr(),
            "ptxas": capture.stdout(),
            "seconds": round(time.perf_counter() - self._started, 4),
        }
        self.verdicts[name] = verdict
        _write_whole(path, json.dumps(verdict))


class Capture:
    """What is written on file descriptor 2 (by LLVM, which knows no `sys.stderr`) and on `sys.stdout` meanwhile."""

    def __enter__(self) -> Capture:
        sys.stderr.flush()
        self._file = tempfile.TemporaryFile()
        self._kept = os.dup(2)
        os.dup2(self._file.fileno(), 2)
        self._out = io.StringIO()
        self._redirect = contextlib.redirect_stdout(self._out)
        self._redirect.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._redirect.__exit__(*error)
        sys.stderr.flush()
        os.dup2(self._kept, 2)
        os.close(self._kept)
        self._text = self._read()
        self._file.close()
        if self._text:  # hand on what was held back: a person may want to see it
            with contextlib.suppress(OSError):
                os.write(2, self._text.encode())

    def _read(self) -> str:
        self._file.seek(0)
        return self._file.read().decode(errors="replace")

    def stderr(self) -> str:
        """Return what was written on file descriptor 2 so far."""
        return self._read()

    def stdout(self) -> str:
        """Return what was printed so far."""
        return self._out.getvalue()


def _write_whole(path: Path, text: str) -> None:
    """Write a file that other processes see whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)
