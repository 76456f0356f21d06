"""What other projects' kernels compile to on every target: their own operators, recorded and compiled, as tables.

    python benchmarks/scan_packages.py [PACKAGE]... [--target T]... [--seconds N] [--into FOLDER]
    python benchmarks/scan_packages.py [PACKAGE]... --resume
    python benchmarks/scan_packages.py [PACKAGE]... --pages
    python benchmarks/scan_packages.py [PACKAGE]... --cold [--kernels N]

The packages must be installed beside this project (examples/packages/README.md says how). Each is driven by its file in
examples/packages, once for each compiler, and each kernel's first launch is compiled for that compiler's targets: all
launches, as `portability scan` compiles them, take two to three times as long. FOLDER (results/packages) gets, for each
package, PACKAGE-cuda.jsonl and PACKAGE-hip.jsonl with the results, launches/ with all that was recorded, and PACKAGE.md
with the tables. After `--seconds N` it stops, and `--resume` goes on from there; `--pages` writes the pages anew.

`--cold` times all of it with nothing in Triton's cache, until N kernels are done (default: all), and prints how many
kernels and targets that is; it publishes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.metadata
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from portability.model import Observation, Outcome
from portability.record.cases import launched, names_of
from portability.record.model import read
from portability.results import Run, read_runs, write_runs

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DRIVERS = ROOT / "results" / "packages", ROOT / "examples" / "packages"
WORK = ROOT / ".portability" / "packages"  # recordings and results while they are made
TARGETS = {
    "cuda:90": ("cuda:75", "cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "cuda:120"),
    "hip:gfx942": ("hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201"),
}  # by what is recorded for: a package may choose other blocks where it finds another vendor's device
NAMED = 4  # kernels that a cause names
LIMIT = "60"  # seconds a launch may compile: the slowest that end take some 20
END_LIMIT = 60.0  # seconds for a check that was told to stop


@dataclass(frozen=True)
class Package:
    """A package by the name that it is imported by."""

    name: str
    distribution: str
    driver: str


PACKAGES = (
    Package("liger_kernel", "liger-kernel", "liger.py"),
    Package("torchao", "torchao", "ao.py"),
    Package("flag_gems", "flag-gems", "flaggems.py"),
    Package("fla", "fla-core", "flash_linear_attention.py"),
)


def main(argv: Sequence[str]) -> int:
    """Scan, write the pages of what was scanned, or time a scan."""
    options = _parser().parse_args(argv)
    packages = [p for p in PACKAGES if p.name in (options.packages or [p.name for p in PACKAGES])]
    if options.cold:
        return _cold(packages, options)
    for package in packages:
        if not options.pages:
            publish(package, options)
        (options.into / f"{package.name}.md").write_text(page(package, options.into))
    return 0


def publish(package: Package, options: argparse.Namespace) -> None:
    """Record the package's launches, compile one of each kernel, and keep both."""
    started = time.monotonic()
    WORK.mkdir(parents=True, exist_ok=True)
    (options.into / "launches").mkdir(parents=True, exist_ok=True)
    results = WORK / f"{package.name}.jsonl"
    if not (options.resume and results.exists()):
        results.unlink(missing_ok=True)
        for recording in record(package, WORK):
            keep(package, recording, options.into / "launches")
    ended = compile_first(package, WORK, results, _wanted(options), options.seconds)
    keep_results(package, read_runs(results), options.into, whole=ended and not options.target)
    print(
        f"{package.name}: {time.monotonic() - started:.0f} s{'' if ended else ', and not all of it: --resume goes on'}"
    )


def _wanted(options: argparse.Namespace) -> list[str]:
    return [t for targets in TARGETS.values() for t in targets if t in options.target or not options.target]


def _recordings(package: Package, folder: Path) -> list[Path]:
    return [folder / f"{package.name}-{recorded.replace(':', '-')}.json" for recorded in TARGETS]


def record(package: Package, folder: Path) -> list[Path]:
    """Record what the package's driver launches, once for each compiler."""
    files = _recordings(package, folder)
    for recorded, file in zip(TARGETS, files, strict=True):
        _run("record", "-o", file, "--target", recorded, "--", DRIVERS / package.driver)
    return files


def compile_first(
    package: Package, folder: Path, results: Path, targets: Sequence[str], seconds: float = 0.0,
    kernels: Sequence[str] = (),
) -> bool:  # fmt: skip
    """Compile each kernel's first launch for `targets`; return whether it came to its end before `seconds`."""
    words = [word for t in targets for word in ("--target", t)] + [word for k in kernels for word in ("--kernel", k)]
    place = ("--resume" if results.exists() else "--results", results)
    return _run(
        "check", *_recordings(package, folder), "--first", *words, "--compile-limit", LIMIT, *place, stop=seconds
    )


def _run(*command: str | Path, stop: float = 0.0) -> bool:
    """Run a command of the project, and return whether it ended before `stop` seconds.

    Its exit code 1 says that a call failed or that something does not compile. It runs outside of any repository, so
    that a commit in between does not make what it has to go on with another's.
    """
    words = [sys.executable, "-m", "portability.cli", *map(str, command)]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(words, cwd=folder) as process:
        try:
            process.wait(stop or None)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_LIMIT)
            process.kill()
            return False
    return True


def _cold(packages: Sequence[Package], options: argparse.Namespace) -> int:
    """Time the recording and the compiling with nothing in the cache, and print what it came to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {"PORTABILITY_CACHE": str(folder / "cache"), "FLAGGEMS_CACHE_DIR": str(folder / "flaggems")}
        started = time.monotonic()
        results: list[Path] = []
        left = options.kernels or sys.maxsize
        for package in packages:
            chosen = names(record(package, folder), left)
            results.append(folder / f"{package.name}.jsonl")
            compile_first(package, folder, results[-1], _wanted(options), 0.0, chosen)
            left -= len(chosen)
            if not left:
                break
        seconds = time.monotonic() - started
        seen = [o for path in results for run in read_runs(path) for o in run.observations]
    kernels, targets = ({getattr(o.cell, of) for o in seen} for of in ("kernel", "target"))
    passed = sum(o.outcome is Outcome.PASS for o in seen)
    of = ", ".join(p.distribution for p in packages)
    cores = len(os.sched_getaffinity(0))
    print(f"{len(kernels)} kernels of {of} on {len(targets)} targets: {passed} of {len(seen)} compiled,")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (used.ru_utime + used.ru_stime) / 60
    print(f"in {seconds / 60:.1f} minutes ({busy:.1f} of one core's time) on {cores} cores, with an empty cache,")
    print("recording included")
    return 0


def names(recordings: Sequence[Path], most: int) -> list[str]:
    """Return the first kernels of a package, in the order in which its driver launches them."""
    several = [read(path) for path in recordings]
    of_all = names_of(c for recording in several for c in recording.launches)
    return list(dict.fromkeys(x.name for recording in several for x in launched(recording, of_all)))[:most]


def keep(package: Package, recording: Path, folder: Path) -> None:
    """Write a recording compressed, without this machine's paths: its kernels are found by their modules."""
    data = json.loads(recording.read_text())
    for launch in data["launches"]:
        launch["file"] = launch["file"].rpartition("site-packages/")[2].rpartition("code_cache/")[2]
    data["versions"][package.distribution] = importlib.metadata.version(package.distribution)
    data |= {"paths": [], "program": [Path(word).name for word in data["program"]]}
    data["variables"] = {n: v for n, v in data.get("variables", {}).items() if not Path(v).is_absolute()}
    text = json.dumps(data, separators=(",", ":")).encode()
    (folder / f"{recording.name}.gz").write_bytes(gzip.compress(text, mtime=0))


def keep_results(package: Package, runs: Sequence[Run], folder: Path, whole: bool = True) -> None:
    """Write results by compiler, with the first line of what was said: the rest is the kernel's source.

    Of a scan that is not the `whole` one, what was published before of its other cells is kept.
    """
    seen = {o.cell for run in runs for o in run.observations}
    for backend in map(_backend, TARGETS):
        path = folder / f"{package.name}-{backend}.jsonl"
        before = read_runs(path) if path.exists() and not whole else []
        several = [_only(run, [o for o in run.observations if o.cell not in seen]) for run in before]
        several += [_only(run, [o for o in run.observations if _backend(o.cell.target) == backend]) for run in runs]
        if several := [run for run in several if run.observations]:
            write_runs(path, several)


def _only(run: Run, observations: Sequence[Observation]) -> Run:
    return replace(run, observations=tuple(map(_brief, observations)))


def _backend(target: str) -> str:
    return target.partition(":")[0]


def _brief(observation: Observation) -> Observation:
    warnings = tuple(replace(w, message=_first(w.message)) for w in observation.warnings)
    return replace(observation, detail=_first(observation.detail), warnings=warnings)


def _first(text: str) -> str:
    return text.strip().split("\n", 1)[0]


# ----------------------------------------------------------------------------------------------------- the page


def page(package: Package, folder: Path) -> str:
    """Return the page of a package: what failed by its cause, then every kernel on every target."""
    runs = [run for path in sorted(folder.glob(f"{package.name}-*.jsonl")) for run in read_runs(path)]
    observations = [o for run in runs for o in run.observations]
    targets = list(_ordered(observations))
    passed = sum(o.outcome is Outcome.PASS for o in observations)
    kernels = len({o.cell.kernel for o in observations})
    versions = runs[0].header.provenance
    head = (
        f"# {package.distribution} {version_of(package, folder / 'launches')}",
        f"{kernels} kernels, {len({_launch(o) for o in observations})} launches, {len(targets)} targets: {passed} of "
        f"{len(observations)} compiled. Triton {versions.triton}, torch {versions.torch}, no GPU: nothing ran. Made by "
        f"`python benchmarks/scan_packages.py {package.name}`; what the failures mean is in `docs/found.md`.",
    )
    return (
        "\n\n".join((*head, "## What failed", _causes(observations), "## Kernels", _kernels(observations, targets)))
        + "\n"
    )


def version_of(package: Package, launches: Path) -> str:
    """Return the version that was recorded, from the recordings."""
    found = {
        json.loads(gzip.decompress(p.read_bytes()))["versions"][package.distribution]
        for p in launches.glob(f"{package.name}-*.json.gz")
    }
    return ", ".join(sorted(found))


def _launch(observation: Observation) -> tuple[str, str, str]:
    return observation.cell.kernel, observation.cell.dtype, observation.cell.sample


def _causes(observations: Sequence[Observation]) -> str:
    """Return a table of what fails alike, the most kernels first."""
    alike: dict[tuple[str, str], list[Observation]] = {}
    for o in observations:
        if o.outcome is not Outcome.PASS:
            alike.setdefault((o.outcome.value, _said(o.detail)), []).append(o)
    rows = [_row("outcome", "what is said", "kernels", "targets"), "|---|---|---|---|"]
    for (outcome, said), some in sorted(alike.items(), key=lambda item: -len({o.cell.kernel for o in item[1]})):
        names = list(dict.fromkeys(_short(o.cell.kernel) for o in some))
        kernels = ", ".join(f"`{n}`" for n in names[:NAMED]) + (
            f" and {len(names) - NAMED} more" if names[NAMED:] else ""
        )
        rows.append(_row(outcome, said, kernels, ", ".join(_ordered(some))))
    return "\n".join(rows) if alike else "Nothing."


def _said(detail: str) -> str:
    """Return the first line of a message without what differs from kernel to kernel."""
    first = re.sub(r"(Required|Hardware limit): \d+", r"\1: …", _first(detail).split(". Reducing", 1)[0])
    return re.sub(r"(marked illegal).*", r"\1", re.sub(r"'tensor<.*", "'tensor<…", first))


def _kernels(observations: Sequence[Observation], targets: Sequence[str]) -> str:
    """Return the table of kernels by targets: how many launches compiled, and the worst outcome of the others."""
    squares: dict[str, dict[str, list[Observation]]] = {}
    for o in observations:
        squares.setdefault(o.cell.kernel, {}).setdefault(o.cell.target, []).append(o)
    rows = [_row("kernel", *targets), "|---" * (len(targets) + 1) + "|"]
    rows += [
        _row(f"`{_short(kernel)}`", *(_square(by.get(t, ())) for t in targets))
        for kernel, by in sorted(squares.items(), key=lambda item: _short(item[0]))
    ]
    return "\n".join(rows)


def _square(observations: Sequence[Observation]) -> str:
    if not observations:
        return "not tried"
    failed = [o.outcome for o in observations if o.outcome is not Outcome.PASS]
    compiled = f"{len(observations) - len(failed)}/{len(observations)}"
    return f"{compiled} {max(failed, key=lambda outcome: outcome.severity).value}" if failed else compiled


def _ordered(observations: Sequence[Observation]) -> Iterator[str]:
    there = {o.cell.target for o in observations}
    return (t for targets in TARGETS.values() for t in targets if t in there)


def _short(kernel: str) -> str:
    """Return a kernel's name without its package; FlagGems writes each of its pointwise kernels as a module."""
    return kernel.rpartition(":")[2].replace("_locals_.", "")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [p.name for p in PACKAGES]
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="only this target (repeatable)")
    parser.add_argument("--into", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument(
        "--seconds", type=float, default=0.0, metavar="N", help="stop compiling a package after so long"
    )
    parser.add_argument(
        "--kernels", type=int, default=0, metavar="N", help="with --cold, so many kernels of each package"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", action="store_true", help="record nothing, and go on with what was stopped")
    how.add_argument("--cold", action="store_true", help="publish nothing: time it with an empty cache")
    how.add_argument("--pages", action="store_true", help="scan nothing: write the pages of the results that are there")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
