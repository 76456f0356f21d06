"""What is published of other projects' kernels is in step with its files; the faults found there show themselves."""

from __future__ import annotations

import ast
import gzip
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from portability.record.cases import launched, names_of
from portability.record.model import read

ROOT = Path(__file__).parents[2]
PUBLISHED, DRIVERS, FOUND = ROOT / "results" / "packages", ROOT / "examples" / "packages", ROOT / "examples" / "found"
PACKAGES = sorted({p.stem.rpartition("-")[0] for p in PUBLISHED.glob("*.jsonl")})
PROJECT = "-m", "portability.cli"
BYTES = 2 * 2**20  # a file of results or recordings
LINES = 200  # a driver
TRITON = tuple(int(n) for n in importlib.metadata.version("triton").split(".")[:2])

# What a reproducer says where the fault is there, and the first Triton that has it.
WITH_TRITON_ALONE = {
    "adasplash_unused_libdevice": ("has no attribute 'float2int_rd'", (3, 6)),
    "conch_half_tanh": ("(triton.language.float16)", (3, 6)),
    "flag_gems_block_pointers": ("Block pointers have been removed in favor of the tensor descriptor API", (3, 9)),
    "fla_fast_cos": ("has no attribute 'fast_cosf'", (3, 6)),
    "fla_tf32x3": ("input_precision must be one of ('bf16x3', 'bf16x6', 'ieee', 'tf32')", (3, 6)),
    "flag_gems_libdevice": ("Implicit conversion of CUDA __nv_rsqrtf device function has been dropped", (3, 6)),
    "mamba_ptx_on_amd": ("allocate output register for constraint 'f'", (3, 6)),
    "torchao_autotune_key": ("key contains names that are not kernel arguments: num_elements", (3, 9)),
    "torchao_scalar_index": ("too many indices for tensor of rank 0", (3, 9)),
    "triton_cat_pointers": ("PassManager::run failed", (3, 6)),
    "triton_int8_dot_turing": ("PassManager::run failed", (3, 6)),
    "triton_one_row_gfx950": ("PassManager::run failed", (3, 9)),
}
WITH_THE_PACKAGE = {  # recorded into nothing, or interpreted, where it is installed in the version that has the fault
    "flag_gems_flash_mla": ("missing 1 required positional argument: 'backend_list'", "flag-gems", "5.0.2", (3, 6)),
    "fla_grpo_warps": ("out of resource: threads", "fla-core", "0.6.0", (3, 6)),
    "flag_gems_recurrent_defaults": ("'NoneType' object has no attribute 'shape'", "flag-gems", "5.0.2", (3, 6)),
    "flag_gems_second_launch": ("the first launch has 3 arguments, the second 2", "flag-gems", "5.0.2", (3, 7)),
    "flag_gems_shift": ("'NoneType' object has no attribute 'dtype'", "flag-gems", "5.0.2", (3, 6)),
    "liger_fused_gate_up": ("expected shape compatible with [4, 16, 256]", "liger-kernel", "0.8.5", (3, 6)),
    "liger_softmax_columns": ("exceeds the recommended Triton blocksize", "liger-kernel", "0.8.5", (3, 6)),
    "mamba_state_update_defaults": ("Value after * must be an iterable", "mamba-ssm", "2.3.2.post1", (3, 6)),
    "moe_ops_offsets": ("[E] offsets: wrong values", "moe-ops", "0.1.0", (3, 6)),
    "moe_ops_topk_gradient": ("expanded gradient: wrong values", "moe-ops", "0.1.0", (3, 6)),
}
INTERPRETED = {"moe_ops_offsets", "moe_ops_topk_gradient"}  # by Triton's interpreter, on the CPU
TARGETS = {"flag_gems_flash_mla": "cuda:100", "fla_grpo_warps": "hip:gfx942"}
CHECKED = "fla_grpo_warps"  # shown by what is compiled of the recording


@pytest.fixture(scope="module")
def scans() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scan_packages", ROOT / "benchmarks" / "scan_packages.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = sys.modules["scan_packages"] = importlib.util.module_from_spec(spec)  # dataclasses look it up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PACKAGES)
def test_a_page_is_in_step_with_its_results(scans: ModuleType, name: str) -> None:
    package = next(p for p in scans.PACKAGES if p.name == name)
    assert (PUBLISHED / f"{name}.md").read_text(encoding="utf-8") == scans.page(package, PUBLISHED)


def test_a_hundred_and_fifty_kernels_are_compiled_for_twelve_targets(scans: ModuleType) -> None:
    runs = [run for path in PUBLISHED.glob("*.jsonl") for run in scans.read_runs(path)]
    targets: dict[str, set[str]] = {}
    for observation in (o for run in runs for o in run.observations):
        targets.setdefault(observation.cell.kernel, set()).add(observation.cell.target)
    assert sum(len(there) >= 12 for there in targets.values()) >= 150


@pytest.mark.parametrize("path", sorted(PUBLISHED.rglob("*.*")), ids=lambda p: p.name)
def test_a_published_file_is_small_and_names_no_place_of_the_machine_that_made_it(path: Path) -> None:
    data = path.read_bytes()
    text = gzip.decompress(data).decode() if path.suffix == ".gz" else data.decode()
    assert len(data) <= BYTES
    assert not re.search(r'"/|/(tmp|root|home|work)/', text)


@pytest.mark.parametrize("path", sorted((PUBLISHED / "launches").glob("*.gz")), ids=lambda p: p.name)
def test_a_recording_names_the_version_of_what_was_recorded(scans: ModuleType, path: Path) -> None:
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    package = next(p for p in scans.PACKAGES if path.name.startswith(f"{p.name}-"))
    assert {"python", "torch", "triton", package.distribution} <= recorded["versions"].keys()


@pytest.mark.parametrize("path", sorted((PUBLISHED / "launches").glob("*.gz")), ids=lambda p: p.name)
def test_a_recording_is_checked_where_its_package_is_installed_and_nothing_else(path: Path) -> None:
    """A kernel is of the package, or of a module that the package wrote, whose text is then in the recording."""
    package = path.name.rpartition("-")[0].rpartition("-")[0]
    calls = read(path).launches
    assert calls
    lost = {c.module for c in calls if c.module.partition(".")[0] != package and not c.source}
    assert not lost


@pytest.mark.parametrize("name", PACKAGES)
def test_a_published_cell_is_found_in_the_published_recordings(scans: ModuleType, name: str) -> None:
    """So `portability reproduce CELL --launches FILE` finds what a table shows."""
    recordings = [read(p) for p in sorted((PUBLISHED / "launches").glob(f"{name}-*.gz"))]
    names = names_of(c for recording in recordings for c in recording.launches)
    recorded = {(x.name, x.dtype, x.sample) for recording in recordings for x in launched(recording, names)}
    runs = [run for path in PUBLISHED.glob(f"{name}-*.jsonl") for run in scans.read_runs(path)]
    assert {(o.cell.kernel, o.cell.dtype, o.cell.sample) for run in runs for o in run.observations} <= recorded


def test_a_scan_of_some_targets_leaves_what_is_published_of_others(scans: ModuleType, tmp_path: Path) -> None:
    package = scans.PACKAGES[0]
    runs = scans.read_runs(PUBLISHED / f"{package.name}-cuda.jsonl")
    scans.keep_results(package, runs, tmp_path)
    some = [scans._only(run, [o for o in run.observations if o.cell.target == "cuda:90"]) for run in runs]
    for whole, targets in ((False, 7), (True, 1)):
        scans.keep_results(package, some, tmp_path, whole)
        kept = [o for run in scans.read_runs(tmp_path / f"{package.name}-cuda.jsonl") for o in run.observations]
        assert len({o.cell.target for o in kept}) == targets
        assert len({o.cell for o in kept}) == len(kept)


def test_as_many_kernels_of_a_package_are_timed_as_are_asked_for(scans: ModuleType) -> None:
    paths = sorted((PUBLISHED / "launches").glob("liger_kernel-*.gz"))
    every = scans.names(paths, sys.maxsize)
    assert scans.names(paths, 3) == every[:3]
    assert len(set(every)) == len(every) > 70


@pytest.mark.parametrize("path", sorted(DRIVERS.glob("*.py")), ids=lambda p: p.name)
def test_a_driver_is_short_and_uses_nothing_of_ours(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    imported = {a.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module or "" for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
    assert len(text.splitlines()) <= LINES
    assert not {name for name in imported if name.partition(".")[0] == "portability"}


def test_every_fault_has_a_reproducer_and_every_reproducer_is_told_of() -> None:
    page = (ROOT / "docs" / "found.md").read_text(encoding="utf-8")
    told = set(re.findall(r"examples/found/(\w+)\.py", page))
    assert told == {p.stem for p in FOUND.glob("*.py")} == WITH_TRITON_ALONE.keys() | WITH_THE_PACKAGE.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITH_TRITON_ALONE))
def test_a_fault_shows_itself_with_triton_alone(name: str) -> None:
    said, since = WITH_TRITON_ALONE[name]
    ended = _run(str(FOUND / f"{name}.py"))
    assert (said in ended.stdout + ended.stderr) == (since <= TRITON)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITH_THE_PACKAGE))
def test_a_fault_shows_itself_in_its_package(name: str, tmp_path: Path) -> None:
    said, distribution, version, since = WITH_THE_PACKAGE[name]
    found = {d.name for d in importlib.metadata.distributions()}
    if distribution.replace("-", "_") not in {n.replace("-", "_") for n in found}:
        pytest.skip(f"{distribution} is not installed")
    if importlib.metadata.version(distribution) != version:
        pytest.skip(f"{distribution} is not {version}")
    target = TARGETS.get(name, "cuda:90")
    launches = str(tmp_path / "launches.json")
    recorded = *PROJECT, "record", "-o", launches, "--target", target, "--"
    ended = [_run(*(() if name in INTERPRETED else recorded), str(FOUND / f"{name}.py"))]
    if name == CHECKED:
        results = str(tmp_path / "results.jsonl")
        ended.append(_run(*PROJECT, "check", launches, "--target", target, "--results", results, "--json"))
    assert (said in "".join(e.stdout + e.stderr for e in ended)) == (since <= TRITON)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=300)
