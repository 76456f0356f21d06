"""Runners: started per environment, timed out, killed with their group, and started again.

A `Runner` is the harness's end of one `portability.runner`. Whatever happens to a cell there ends as an observation
here: a crash with its signal, a hang with the line where it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from portability import environments
from portability.environments import Environment
from portability.model import Cell, Evidence, Observation, Outcome, Target, from_json, to_json
from portability.paths import without_paths

PACKAGE_PARENT = Path(__file__).resolve().parent.parent
TEMPORARY = "PORTABILITY_RUNNER_TEMP"  # told to a runner: where its children leave word of where they are
SAFE = {
    "PYTHONSAFEPATH": "1"
}  # a file copy.py in the current folder is not the standard library's; from Python 3.11 on
START_LIMIT = 120.0  # seconds until torch, triton and the kernels are imported, on a slow disk
# Variables of a shell that would change a result are not inherited. What a run needs of them it sets itself.
SCRUBBED = re.compile(
    r"^(TRITON_|MLIR_|LLVM_|PTXAS_|DISABLE_PTXAS|DISABLE_LLVM|NVPTX_|AMDGCN_|USE_IR_LOC|PYTHONSTARTUP$)"
)
NOT_THE_KERNELS = re.compile(r"/(portability|triton|torch|numpy)/(?!kernels/)|<frozen|/lib/python3")


class RunnerDiedError(RuntimeError):
    """A runner's process ended: by a signal (negative) or with an exit code."""

    def __init__(self, code: int, said: str) -> None:
        self.code, self.said = code, said
        super().__init__(f"{_end(code)}{': ' + said if said else ''}")


class RunnerTimedOutError(RuntimeError):
    """A runner did not answer in time, and was killed."""

    def __init__(self, limit: float, line: str) -> None:
        self.limit, self.line = limit, line
        super().__init__(f"no end after {limit:g} s{f', at {line}' if line else ''}")


class Runner:
    """One process of `portability.runner`, started when first asked, and again after its end."""

    def __init__(
        self, environment: Environment, folder: Path, kernels: Sequence[str] = (), backends: Sequence[str] = (),
        threads: int | None = None,
    ) -> None:  # fmt: skip
        """`threads` bounds what torch computes with on the CPU: 1 where there are as many runners as cores."""
        self.environment, self.folder = environment, folder
        self._threads = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        self._modules = {"kernels": list(kernels), "backends": list(backends)}
        self._process: subprocess.Popen[bytes] | None = None
        self._child = 0
        self._pending = b""
        self._temporary: Path | None = None

    def ask(self, request: Mapping[str, Any], limit: float) -> dict[str, Any]:
        """Return the reply. Raises `RunnerDiedError` or `RunnerTimedOutError`; the next call starts a runner again."""
        started = self._start()
        self._send({**self._modules, **request})
        deadline = time.monotonic() + (START_LIMIT if started else 0) + limit
        while True:
            reply = self._receive(deadline)
            if reply is None:
                line = self._where()
                self._kill_child()
                raise RunnerTimedOutError(limit, line)
            if "child" in reply:
                self._child = reply["child"]
                deadline = time.monotonic() + limit  # imports are over: the limit is the cell's own
            elif "died" in reply:
                raise RunnerDiedError(reply["died"], self._said())
            else:
                return reply

    def run(self, request: Mapping[str, Any], cell: Cell, target: Target, limit: float) -> Observation:
        """Return the observation of one cell, whatever became of it."""

        def lost(outcome: Outcome, error: Exception, line: str = "", stage: str = "run") -> Observation:
            evidence = target.evidence
            stage = stage if evidence.executes else "compile"
            versions, blocks = dict(target.versions), dict(request["blocks"])
            return Observation(
                cell,
                evidence,
                outcome,
                stage,
                without_paths(str(error)),
                line,
                blocks=blocks,
                blocks_from=request.get("blocks_from", ""),
                versions=versions,
                device=target.device,
                when=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
            )

        try:
            reply = self.ask({"op": "run", **request, "cell": to_json(cell), "target": to_json(target)}, limit)
        except RunnerTimedOutError as error:
            return lost(Outcome.TIMEOUT, error, error.line)
        except RunnerDiedError as error:
            return lost(Outcome.CRASH, error)
        if "failure" in reply:
            return lost(
                Outcome.HARNESS_ERROR, RuntimeError(reply["failure"] + "\n" + reply["traceback"]), stage="harness"
            )
        return from_json(Observation, reply["observation"])

    def close(self) -> None:
        """End the runner, and leave neither a process nor a file."""
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._kill_child()
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        self._pending, self._child = b"", 0

    # ------------------------------------------------------------------------------------------ the process

    def _start(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return False
        self.close()
        self._temporary = Path(tempfile.mkdtemp(prefix="runner-", dir=self.folder))
        with open(self._temporary / "stderr", "wb") as stderr:
            command, variables = self._command()
            kept = {k: v for k, v in os.environ.items() if not SCRUBBED.match(k)}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                env={**kept, **self._threads, **variables}, bufsize=0, start_new_session=True,
            )  # fmt: skip
        return True

    def _command(self) -> tuple[list[str], dict[str, str]]:
        """Return what starts a runner, and the variables that it needs."""
        assert self._temporary is not None
        place = str(self._temporary)
        own = {**variables_of(self.environment), **SAFE, "TMPDIR": place, TEMPORARY: place}
        if self.environment.host:  # there, the package is installed in the environment's own Python
            del own["TMPDIR"], own[TEMPORARY]
            assigned = [f"{k}={v}" for k, v in own.items() if k != "TRITON_CACHE_DIR"]
            command = ["env", *assigned, self.environment.python, "-m", "portability.runner"]
            return ["ssh", "-o", "BatchMode=yes", self.environment.host, shlex.join(command)], {}
        if self.environment.python == sys.executable:
            paths = [str(PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]
            return [sys.executable, "-m", "portability.runner"], {
                **own,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            }
        command, variables = environments.start(self.environment, self._temporary, self._modules["backends"])
        return command, {**own, **variables}

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise RunnerDiedError(self._process.wait(), self._said()) from None

    def _receive(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message, or None when the time is over."""
        assert self._process is not None
        assert self._process.stdout is not None
        while b"\n" not in self._pending:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self._process.stdout], [], [], wait)[0]:
                return None
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise RunnerDiedError(self._process.wait(), self._said())
            self._pending += part
        line, self._pending = self._pending.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def _kill_child(self) -> None:
        """Kill the child's group; the runner reports its end and forks the next. A distant one ends with its pipe."""
        assert self._process is not None
        if not self._child or self.environment.host:
            self._process.kill()
            self._process.wait()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child, signal.SIGKILL)
        deadline = time.monotonic() + 10
        try:
            while (reply := self._receive(deadline)) is not None and "died" not in reply:
                pass
        except RunnerDiedError:
            return
        if reply is None:
            self._process.kill()

    def _where(self) -> str:
        """Ask a hanging child for its Python line; the innermost that is not the harness's own or a library's."""
        assert self._temporary is not None
        trace = self._temporary / "traceback"
        if not self._child or self.environment.host:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGUSR1)
        for _ in range(20):
            time.sleep(0.05)
            if trace.exists() and (frames := re.findall(r'File "([^"]+)", line (\d+)', trace.read_text())):
                own = [f"{file}:{line}" for file, line in frames if not NOT_THE_KERNELS.search(file)]
                return _relative(own[0]) if own else ""
        return ""

    def _said(self) -> str:
        """Return the last lines that a dead process wrote."""
        assert self._temporary is not None
        with contextlib.suppress(OSError):
            return "\n".join((self._temporary / "stderr").read_text(errors="replace").strip().splitlines()[-8:])
        return ""


def variables_of(environment: Environment) -> dict[str, str]:
    """Return the variables that a runner is given, whatever the user's shell holds: results must not depend on it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "triton-portability" / "compiled"
    return {
        "TRITON_CACHE_DIR": os.environ.get("PORTABILITY_CACHE", str(cache)),
        "TRITON_DEFAULT_FP_FUSION": "1",  # Triton 3.10 changes the default
        "PYTHONHASHSEED": "0",
        **environment.variables,
    }


@contextlib.contextmanager
def temporary_folder() -> Any:
    """Make a folder for runners, named by this process; folders of processes that are no more are removed first."""
    base = Path(tempfile.gettempdir())
    for old in base.glob("portability-*-*"):
        owner = old.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc").exists():
            shutil.rmtree(old, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"portability-{os.getpid()}-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def unavailable(cell: Cell, target: Target) -> Observation:
    """Return the observation of a cell that nothing here can try."""
    why = f"{target.why}; {target.remedy}" if target.remedy else target.why
    return Observation(cell, Evidence.NONE, Outcome.UNAVAILABLE, "open", why, versions=dict(target.versions))


def _relative(line: str) -> str:
    file, _, number = line.rpartition(":")
    path = Path(file)
    for base in (Path.cwd(), PACKAGE_PARENT):
        if path.is_relative_to(base):
            return f"{path.relative_to(base).as_posix()}:{number}"
    return f"{'/'.join(path.parts[-2:])}:{number}"


def _end(code: int) -> str:
    if code >= 0:
        return f"the process ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process was ended by signal {-code}"
