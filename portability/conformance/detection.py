"""Whether asking an adapter for its status leaves the process, and every device, as they were."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from portability.backend import Backend
from portability.conformance.model import Result, result
from portability.model import Evidence, Target

SLOW = 60.0  # seconds that status() may take: the first question to a driver


def detection(adapter: Backend) -> Result:
    """Ask twice; nothing of the process may change, and no device may be opened."""
    with _own_temporary_folder():
        before, began = _traces(adapter), time.perf_counter()
        first = list(adapter.status())
        seconds = time.perf_counter() - began
        second = list(adapter.status())
        after = _traces(adapter)
    problems = [f"{name}: {after[name]} where it was {before[name]}" for name in before if before[name] != after[name]]
    problems += ["two answers differ"] if first != second else []
    problems += [f"it took {seconds:.0f} s"] if seconds > SLOW else []
    problems += _told(first, adapter)
    return result("detection", problems, f"{len(first)} targets in {seconds:.2f} s, and nothing changed")


@contextlib.contextmanager
def _own_temporary_folder() -> Iterator[None]:
    """Let temporary files of this process lie apart from what other processes make and remove meanwhile."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before


def _told(targets: Sequence[Target], adapter: Backend) -> Iterator[str]:
    """Yield what status() leaves out: a target, a reason, what would give more, a device where something ran."""
    ids = [t.id for t in targets]
    yield from (f"{t} is missing" for t in adapter.targets if t not in ids)
    yield from (f"{t} is given twice" for t in sorted(set(ids)) if ids.count(t) > 1)
    for t in targets:
        if t.backend != adapter.name:
            yield f"{t.id}: backend is {t.backend!r}"
        if t.evidence is not Evidence.RAN and not t.why:
            yield f"{t.id}: {t.evidence} without a word why no more"
        if t.evidence is Evidence.NONE and not t.remedy:
            yield f"{t.id}: nothing can be done here, and no remedy is named"
        if t.evidence is Evidence.RAN and not t.device:
            yield f"{t.id}: it runs on no device that is named"


def _traces(adapter: Backend) -> dict[str, Any]:
    """Return what a detection could leave behind in this process."""
    module = getattr(torch, adapter.device, None)
    opened = getattr(module, "is_initialized", None)
    return {
        "the device is opened": bool(opened()) if callable(opened) else False,
        "Triton's driver": type(active_driver()).__name__,
        "environment variables": dict(os.environ),
        "the working folder": os.getcwd(),
        "the module path": list(sys.path),
        "threads": threading.active_count(),
        "child processes": _children(),
        "temporary files": sorted(os.listdir(tempfile.gettempdir())),
        "torch's default device": str(torch.get_default_device()),
    }


def active_driver() -> Any:
    """Return Triton's active driver, where one was made: looking must not make it."""
    runtime = sys.modules.get("triton.runtime")
    driver = getattr(runtime, "driver", None)
    return getattr(driver, "_active", None)


def _children() -> int:
    return sum(len(f.read_text().split()) for f in Path("/proc/self/task").glob("*/children"))
