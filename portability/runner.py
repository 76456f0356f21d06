"""`python -m portability.runner`: cells in, observations out, as JSON lines over a pipe.

Requests come on standard input, one at a time; replies leave on what was standard output at the start (file descriptor
1 is then joined to 2, so that a kernel's prints cannot be taken for a reply). The process that is started only imports,
forks, and waits: a cell that aborts or hangs ends its child alone, and the next child starts from the imported state
in milliseconds. No device is touched before the fork.

    {"op": "catalogue", "kernels": [...], "backends": [...], "ask": [...]}  ->  {"catalogue": {...}}
    {"op": "run", "cell": ..., "target": ..., "blocks": ..., "options": ...}  ->  {"observation": {...}}
    {"op": "check", "file": ..., "root": ..., "target": ...}  ->  {"check": {...}}
    {"op": "launch", "calls": ..., "cell": ..., "target": ...}  ->  {"observation": {...}}
    {"op": "stages", "cell": ..., "target": ..., "blocks": ..., "options": ...}  ->  {"stages": {...}}
    {"op": "read", "cell": ..., "target": ..., "blocks": ..., "options": ...}  ->  {"observation": ..., "readings": ...}
    {"op": "conformance", "backend": ..., "check": ..., "target": ...}  ->  {"results": [...]}
    (a new child)  ->  {"child": pid}        (its end)  ->  {"died": signal or exit code}
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from portability import backend as backends
from portability import kernel as kernels
from portability.model import Cell, Target, from_json, to_json
from portability.paths import importable

TRACE = "traceback"  # in the temporary folder: where a child was when it was asked (SIGUSR1)
FINISHED = 77  # exit code of a child that ended because its device can be used no more


def catalogue(kernel_modules: Sequence[str], backend_modules: Sequence[str], ask: Sequence[str]) -> dict[str, Any]:
    """Return the cases, the targets with what can be done here, and the versions, as JSON's types.

    `ask` names the adapters to ask for their status; empty means those of the default environment.
    """
    found = kernels.discover(kernel_modules)
    adapters = backends.discover(tuple(backend_modules))
    packages = {k: v for k, v in versions().items() if k in ("torch", "triton")}
    asked = [b for b in adapters.values() if (b.name in ask if ask else b.environment == "default")]
    return {
        "cases": [to_json(c.info(kernels.relative(found.files[c.name], Path.cwd()))) for c in found.cases.values()],
        "errors": dict(found.errors),
        "targets": [to_json(replace(t, versions=t.versions or packages)) for b in asked for t in b.status()],
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions that a result depends on, of this environment."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "triton", "numpy"):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = str(getattr(module, "__version__", "unknown"))
    return found


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the observation of one cell, and whether this process can go on."""
    from portability.outcomes import poisons
    from portability.run import Options, run_cell

    cell, target = from_json(Cell, request["cell"]), from_json(Target, request["target"])
    case = _case(request, cell.kernel)
    adapter = backends.discover(tuple(request.get("backends", ())))[target.backend]
    blocks = kernels.Blocks(request["blocks"])
    observation = run_cell(
        cell, case, adapter, target, blocks, request.get("blocks_from", ""), Options(**request["options"])
    )
    return {"observation": to_json(observation), "last": target.evidence.executes and poisons(observation)}


def _case(request: Mapping[str, Any], name: str) -> kernels.KernelCase:
    """Return the case, one with a smaller sample, or that of a module with a mistake put into it."""
    if "change" in request:
        from portability.reproducer.change import changed

        case = _cases(tuple(request.get("kernels", ()))).cases[name]
        return changed(case, request["cell"]["sample"], request["change"])
    if "mutant" in request:
        from portability.mutation.load import mutated

        return mutated(**request["mutant"])[name]
    return _cases(tuple(request.get("kernels", ()))).cases[name]


@cache
def _cases(modules: tuple[str, ...]) -> kernels.Discovered:
    return kernels.discover(modules)


# Requests that other parts serve, imported on use: op -> module of the package, function, key of the reply or "".
OPERATIONS: Mapping[str, tuple[str, str, str]] = {
    "check": ("checks.cell", "check", "check"),
    "launch": ("record.replay", "replay", ""),
    "stages": ("stages.collect", "collect", "stages"),
    "reproduce": ("reproducer.inside", "answer", ""),
    "read": ("porting.reading", "read", ""),
    "conformance": ("conformance.inside", "examine", "results"),
}


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to one request; an error of the harness is a reply too."""
    try:
        if request["op"] == "catalogue":
            return {"catalogue": catalogue(request["kernels"], request["backends"], request["ask"])}
        if request["op"] in OPERATIONS:
            module, function, key = OPERATIONS[request["op"]]
            made = getattr(importlib.import_module(f"portability.{module}"), function)(request)
            return {key: made} if key else dict(made)
        return run(request)
    except Exception as error:  # the pipe must not break: the caller reports it as the harness's own
        return {"failure": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}


def main() -> int:
    """Serve until standard input ends."""
    reply = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    _die_with_parent()
    _stay_nice()
    os.environ.pop("PYTHONSAFEPATH", None)  # it is for this process alone
    importable(Path.cwd())
    request: Mapping[str, Any] | None = (
        _read_line()
    )  # the first request says what to import, once, before the first fork
    if request is None:
        return 0
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401
        import triton  # noqa: F401
    with contextlib.suppress(Exception):  # raised again, and then answered, when the request itself is served
        for adapter in backends.discover(tuple(request.get("backends", ()))).values():
            adapter.prepare()
        _cases(tuple(request.get("kernels", ())))
    gc.freeze()  # what was imported stays: no child's collector has to walk it, nor copies its pages
    while request is not None:
        code, request = _child(request, reply)
        if code == 0:
            return 0
    return 0


def _stay_nice() -> None:
    """Yield to other sessions as this process is told to by `nice`: Linux's autogroups weigh whole sessions anew."""
    niceness = os.nice(0)
    if niceness > 0:
        with contextlib.suppress(OSError):  # a kernel without autogroups weighs processes
            Path("/proc/self/autogroup").write_text(str(niceness))


def _child(request: Mapping[str, Any], reply: Any) -> tuple[int, Mapping[str, Any] | None]:
    """Serve requests in a child until it ends; return its end, and the next request after an unnatural one."""
    folder = tempfile.mkdtemp(prefix="cell-")
    if request.get("op") == "launch":  # a child a target: what each would do anew is done before the fork
        _hash_compiler()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        _die_with_parent()
        _serve(request, reply, folder)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # both sides set it: whichever comes first
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # an assembler that it had started
    shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return 0, None
    if code != FINISHED:
        _say(reply, {"died": code})
    return code, _read_line()


def _hash_compiler() -> None:
    """Have Triton hash its own files, which it does once in a process and takes most of a second for."""
    with contextlib.suppress(ImportError, AttributeError):  # a Triton that keeps it elsewhere does it in the child
        from triton.runtime.cache import triton_key

        triton_key()


def _serve(request: Mapping[str, Any] | None, reply: Any, folder: str) -> None:
    tempfile.tempdir = folder
    os.environ["TMPDIR"] = folder
    trace = open(os.path.join(os.environ.get("PORTABILITY_RUNNER_TEMP", folder), TRACE), "w+")  # noqa: SIM115 - open as long as the process
    faulthandler.register(signal.SIGUSR1, file=trace, all_threads=False)
    _say(reply, {"child": os.getpid()})
    while request is not None:
        answered = answer(request)
        _say(reply, answered)
        if answered.get("last"):
            os._exit(FINISHED)
        request = _read_line()
    os._exit(0)


def _say(reply: Any, message: Mapping[str, Any]) -> None:
    reply.write(json.dumps(message) + "\n")
    reply.flush()


def _read_line() -> dict[str, Any] | None:
    """Read one request. Unbuffered: what follows belongs to the next child, and comes only after the reply."""
    text = b""
    while not text.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            return None
        text += part
    made: dict[str, Any] = json.loads(text)
    return made


def _die_with_parent() -> None:
    """End with the process that started this one, even if that was killed (Linux's PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    os._exit(main())  # nothing is open, and to take down all that was imported takes half a second
