"""Where a run is made, and with what: the header of its results file."""

from __future__ import annotations

import os
import platform
import subprocess
import uuid
from collections.abc import Mapping
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from portability.model import Evidence
from portability.pool import variables_of
from portability.results import Header, Provenance, Selection

if TYPE_CHECKING:
    from portability.harness import Harness

COMMIT = "PORTABILITY_COMMIT"  # of sources that were copied without their history
HOST = "PORTABILITY_HOST"  # a label that people give their machine; its network name is nobody's business


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def header_of(harness: Harness, selection: Selection, seed: int) -> Header:
    """Return the header of a run of `harness` that begins now."""
    catalogue, asked = harness.catalogue, selection.environments
    dtypes = sorted({d for c in catalogue.cases for d in c.dtypes})
    claims = {t.id: tuple(d for d in dtypes if harness.adapters[t.backend].claims(t.id, d)) for t in catalogue.targets}
    return Header(
        run=uuid.uuid4().hex[:12],
        provenance=Provenance(
            host=os.environ.get(HOST, ""),
            os=f"{platform.system()} {platform.machine()}",
            python=catalogue.versions.get("python", platform.python_version()),
            torch=catalogue.versions.get("torch", ""),
            triton=catalogue.versions.get("triton", ""),
            driver=_driver(),
            devices=tuple(
                dict.fromkeys(t.device for t in catalogue.targets if t.evidence is Evidence.RAN and t.device)
            ),
            commit=commit_of(harness.root),
            knobs=_knobs(harness),
            seed=seed,
            started=now(),
        ),
        targets=tuple(t for t in catalogue.targets if not asked or any(fnmatchcase(t.environment, e) for e in asked)),
        cases=catalogue.cases,
        claims=claims,
        expectations=harness.matrix.expectations,
        selection=selection,
    )


def commit_of(root: Path) -> str:
    """Return git's commit of the project at `root`, with "+" where files were changed; else what COMMIT says."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=30, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            "+" if git("status", "--porcelain", "--untracked-files=no") else ""
        )
    except (OSError, subprocess.SubprocessError):
        return os.environ.get(COMMIT, "")


def _knobs(harness: Harness) -> Mapping[str, str]:
    """What changes numerics, and is set for every runner whatever the shell holds."""
    variables = variables_of(harness.environment("default"))
    return {k: v for k, v in variables.items() if k != "TRITON_CACHE_DIR"}


def _driver() -> str:
    """Return the version of NVIDIA's or AMD's kernel driver, where one is loaded."""
    for path in (Path("/sys/module/nvidia/version"), Path("/sys/module/amdgpu/version")):
        try:
            return path.read_text().strip()
        except OSError:
            continue
    return ""
