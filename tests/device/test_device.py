"""What only a device can show. Skipped where none is visible."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from portability.backend import discover
from portability.kernel import discover as kernels_of
from portability.matrix import Matrix
from portability.model import Evidence, Outcome
from portability.results import Run
from tests.engine.conftest import Project, by_cell


def visible() -> bool:
    """Return whether an adapter sees a device; none is opened."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        return False
    return any(t.evidence is Evidence.RAN for b in discover().values() for t in b.status())


pytestmark = pytest.mark.skipif(not visible(), reason="no device is visible here")


def device() -> str:
    """Return the name of a target that cells run on here."""
    return next(t.id for b in discover().values() for t in b.status() if t.evidence is Evidence.RAN)


def test_what_is_compiled_without_a_device_is_what_a_device_launches(tmp_path: Path) -> None:
    """For every bundled kernel and dtype, the hashes of the compile-only column hold those of the launches."""
    (tmp_path / "matrix.toml").write_text("")
    project = Project(tmp_path)
    kernels = [name for name, case in kernels_of(Matrix().kernels).cases.items() if not case.group]
    words = (*kernels, "--target", device(), "--samples", "quick", "--no-timing")

    def hashes(evidence: Evidence, *more: str, **variables: str) -> tuple[Run, dict[str, set[str]]]:
        run, code, said = project.run(*words, *more, variables=variables, timeout=600)
        assert code == 0, said
        assert {o.evidence for o in run.observations if o.resources} == {evidence}, said
        return run, {o.cell.id: {r.hash for r in o.resources} for o in run.observations}

    run, launched = hashes(Evidence.RAN)
    # What is only compiled is so for one dtype, unless others are asked for.
    dtypes = [word for d in sorted({o.cell.dtype for o in run.observations}) for word in ("--dtype", d)]
    hidden = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "")
    _, compiled = hashes(Evidence.COMPILED, *dtypes, **hidden)
    print(f"{sum(map(len, launched.values()))} binaries compared")
    assert any(launched.values())
    differing = {cell: (found, compiled.get(cell)) for cell, found in launched.items()}
    assert not {c: pair for c, pair in differing.items() if pair[1] is None or not pair[0] <= pair[1]}


def test_an_illegal_access_costs_its_cell_alone(tmp_path: Path) -> None:
    """A poisoned context ends with the process that holds it: the cells after it pass."""
    shutil.copytree(Path(__file__).parent.parent / "engine" / "faulty", tmp_path / "faulty")
    (tmp_path / "matrix.toml").write_text('[matrix]\nkernels = ["faulty.cases"]\n')
    project = Project(tmp_path)
    target = device()
    run, _, said = project.run(
        "right",
        "illegal",
        "beyond",
        "vector_add",
        "--target",
        target,
        "-n",
        "4",
        "--no-timing",
        "--samples",
        "quick",
        timeout=600,
    )
    found = by_cell(run)
    assert found["illegal", target].outcome is Outcome.OUT_OF_BOUNDS, said
    assert found["beyond", target].outcome is Outcome.OUT_OF_BOUNDS
    others = [o for o in run.observations if o.cell.kernel in ("right", "vector_add") and o.cell.target == target]
    assert len(others) > 1
    assert {o.outcome for o in others} == {Outcome.PASS}


def holders(folder: Path) -> set[str]:
    """Return the processes of a project in `folder` that have an NVIDIA or AMD device file open."""
    found = set()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if str(folder) not in (process / "environ").read_text(errors="replace"):
                continue
            opened = {os.readlink(fd) for fd in (process / "fd").iterdir()}
        except OSError:  # it has ended meanwhile
            continue
        if any(re.fullmatch(r"/dev/(nvidia\d+|kfd)", path) for path in opened):
            found.add(process.name)
    return found


def test_one_context_a_device(tmp_path: Path) -> None:
    """However many workers there are, one process at a time holds the device."""
    (tmp_path / "matrix.toml").write_text("")
    project = Project(tmp_path)
    target = device()
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            seen.append(len(holders(tmp_path)))

    thread = threading.Thread(target=watch)
    thread.start()
    _, code, said = project.run(
        "vector_add", "softmax", "--target", target, "-n", "4", "--no-timing", "--samples", "quick", timeout=600
    )
    over.set()
    thread.join()
    assert code == 0, said
    assert max(seen) == 1, seen


PLACES = {  # outcome, and a part of what is said
    "doubled": (Outcome.PASS, ""),
    "in_the_default_stream": (Outcome.RACE, "differs in another stream"),
    "in_pairs": (Outcome.OUT_OF_BOUNDS, "misaligned address"),
    "total": (Outcome.NONDETERMINISTIC, "differs in bits from run to run"),
    "total_in_any_order": (Outcome.PASS, ""),
}


def test_another_stream_other_places_and_repetition(tmp_path: Path) -> None:
    """A launch outside of the current stream, a kernel for aligned inputs alone, and sums in any order are told."""
    shutil.copy(Path(__file__).parent / "faulty_on_device.py", tmp_path)
    (tmp_path / "matrix.toml").write_text('[matrix]\nkernels = ["faulty_on_device"]\n')
    target = device()
    run, _, said = Project(tmp_path).run(*PLACES, "--target", target, "--no-timing", "-n0", timeout=600)
    found = by_cell(run)
    for name, (outcome, part) in PLACES.items():
        assert found[name, target].outcome is outcome, f"{name}: {found[name, target].detail}\n{said}"
        assert part in found[name, target].detail


def alone(script: str, *words: str, **variables: str) -> dict[str, Any]:
    """Return what a script beside this file prints last, JSON, run by itself: this process must hold no device."""
    made = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *words], check=False, env={**os.environ, **variables},
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr[-4000:]
    report: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return report


@pytest.mark.parametrize("tokens", [37, 128])
def test_a_compiled_layer_is_the_layer(tmp_path: Path, tokens: int) -> None:
    """Inductor's code around the operators: output and gradients of a decoder layer are those of the eager one."""
    report = alone("compiled_layer.py", str(tokens), TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    assert report["graphs"] == 1
    assert {"flash_attention_kernel", "matmul_kernel"} & set(report["kernels"]), report["kernels"]
    # Each is compared with the eager layer in float32: the compiled half-precision one may be off twice as far.
    for name, (eager, graph) in report["errors"].items():
        assert graph <= 2 * eager + 1e-6, f"{name}: {graph:.2e} compiled, {eager:.2e} eager"


def test_attention_is_right_whichever_kernels_a_table_takes() -> None:
    """By pointers and by descriptors: no further from float64 than rounding of the operands, and the same each time."""
    kinds = [(dtype, descriptors) for dtype in ("float16", "bfloat16") for descriptors in ("0", "1")]
    with ThreadPoolExecutor(len(kinds)) as pool:  # each compiles for a minute
        reports = pool.map(lambda kind: alone("attention.py", "cuda", *kind), kinds)
        for (dtype, descriptors), found in zip(kinds, reports, strict=True):
            assert found["error"] < (1.5e-2 if dtype == "bfloat16" else 2e-3), (dtype, descriptors, found)
            assert not found["differing"], (dtype, descriptors, found)
