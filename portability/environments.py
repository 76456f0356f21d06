"""Environments: Pythons of their own for the compilers that cannot share one with the harness.

triton-ascend is a package named `triton`, and so is every other version of Triton: each needs a virtual environment of
its own. Nothing of the harness is installed there: a runner is started as `<its python> -m portability.runner`, with a
link to the engine on its path.

Environments live in the folder that `PORTABILITY_ENVIRONMENTS` names, else in `triton-portability/environments` of the
user's cache (`$XDG_CACHE_HOME`, else `~/.cache`):

    ascend/bin/python          a virtual environment
    ascend/environment.json    what it holds, written last: without it the folder is unfinished and counts as absent
    ascend.lock                held while it is made or removed

A distribution that brings an adapter for another compiler brings the recipe too, by an entry point in the group
`portability.environments` that names a `Recipe`. This module imports neither torch nor triton.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType

PLACE = "PORTABILITY_ENVIRONMENTS"
MARK = "environment.json"
ENGINE = Path(__file__).resolve().parent

Say = Callable[[str], None]


class CreationError(RuntimeError):
    """An environment could not be made; the message says what is missing and what can be done."""


@dataclass(frozen=True)
class Environment:
    """Where targets are opened: a Python, variables and a host."""

    name: str
    python: str  # executable, on its host
    variables: Mapping[str, str] = field(default_factory=dict)
    host: str = ""  # reached by ssh; empty is this machine
    versions: Mapping[str, str] = field(default_factory=dict)  # of python, torch and triton, where they are known


@dataclass(frozen=True)
class Recipe:
    """How an environment is made. Packages are pinned, so that a table made next year is made with the same ones."""

    name: str
    holds: str  # in words
    pythons: tuple[str, ...]  # versions it may be made with, the best first
    triton: str  # the distribution that supplies the package `triton`, installed last and without its dependencies
    packages: tuple[str, ...]
    also: tuple[str, ...] = ()  # distributions installed like `triton`

    @property
    def digest(self) -> str:
        """What an existing environment must have been made from to be taken as it is."""
        return hashlib.sha256(repr((self.triton, self.packages, self.also)).encode()).hexdigest()[:16]


# numpy 2.2: the last for Python 3.10, and below 2.4, with which the interpreter of Triton 3.6 fails.
# torch: its index is pip's own configuration; a CPU build is enough, and where there is a GPU the CUDA build works too.
COMMON = ("torch==2.13.0", "numpy==2.2.6", "setuptools==80.9.0")


def _triton(version: str) -> Recipe:
    minor = version.rpartition(".")[0]
    packages = (*COMMON, "msgpack==1.2.4")
    return Recipe(f"triton-{minor}", f"Triton {version}", ("3.11", "3.12", "3.13"), f"triton=={version}", packages)


_ASCEND = Recipe(
    name="ascend",
    holds="triton-ascend 3.2.0 and the AscendNPU IR compiler 1.2.0",
    pythons=("3.11", "3.10"),  # those that triton-ascend publishes wheels for
    triton="triton-ascend==3.2.0",
    packages=(
        *COMMON,
        "scipy==1.15.3",
        "attrs==26.1.0",
        "decorator==5.3.1",
        "psutil==7.2.2",
        "pyyaml==6.0.4",
        "pybind11==3.1.0",
    ),
    also=("ascendnpu-ir==1.2.0",),
)


def known() -> Mapping[str, Recipe]:
    """Return the environments that `create` can make, by name: the bundled ones, and those of other distributions.

    Raises `ValueError` naming the entry point that is no recipe.
    """
    recipes = [_ASCEND, *map(_triton, ("3.6.0", "3.7.1", "3.8.0", "3.9.0"))]
    for point in sorted(entry_points(group="portability.environments"), key=lambda e: e.name):
        place = f"entry point {point.name} = {point.value}"
        try:
            recipe = point.load()
        except Exception as error:  # a module may raise anything while it is imported; it is named either way
            raise ValueError(f"{place}: cannot be imported: {type(error).__name__}: {error}") from error
        if not isinstance(recipe, Recipe):
            raise ValueError(f"{place}: a Recipe is needed, not {recipe!r}")
        recipes.append(recipe)
    return MappingProxyType({r.name: r for r in recipes})


def place() -> Path:
    """Return the folder in which environments lie."""
    if os.environ.get(PLACE):
        return Path(os.environ[PLACE]).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "triton-portability" / "environments"


def installed() -> Mapping[str, Environment]:
    """Return the environments that are whole, by name."""
    marks = sorted(place().glob(f"*/{MARK}"))
    return MappingProxyType({e.name: e for e in map(_read, marks)})


def get(name: str) -> Environment:
    """Return the environment `name`. Raises `LookupError` with the command that makes it, or with the choices."""
    found = installed()
    if name in found:
        return found[name]
    if name in known():
        raise LookupError(f"environment {name!r} is not installed: portability env create {name}")
    raise LookupError(f"no environment {name!r}; there are {', '.join(sorted({*known(), *found}))}")


def silent(line: str) -> None:
    """Say nothing of what is done."""


def create(name: str, python: str | None = None, say: Say = silent) -> Environment:
    """Make the environment `name`, or return it where it is there and up to date.

    `python` is the executable to make it with (default: the first on PATH that fits); `say` is told each step. Raises
    `CreationError`, and then nothing is left of it. Two at once: the second waits, and finds what the first made.
    """
    recipe = known().get(name)
    if recipe is None:
        raise CreationError(f"no environment {name!r}; there are {', '.join(known())}")
    folder = place() / name
    with _locked(folder):
        found = _whole(folder)
        if found is not None and _made_from(folder) == recipe.digest:
            say(f"{name}: already there, {_summary(found.versions)}")
            return found
        base = find_python(recipe.pythons, python)
        _discard(folder)
        try:
            return _build(recipe, folder, base, say)
        except BaseException:  # an interruption too: half an environment would look like a whole one to a person
            _discard(folder)
            raise


def remove(name: str) -> bool:
    """Remove the environment `name`, finished or not; returns whether there was one."""
    folder = place() / name
    if Path(name).name != name or name not in {*known(), *installed()}:
        raise LookupError(f"no environment {name!r}; there are {', '.join(sorted({*known(), *installed()}))}")
    if not folder.exists():
        return False
    with _locked(folder):
        _discard(folder)
    return True


def start(environment: Environment, folder: Path, modules: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a runner of `environment` on this machine, and the variables that it needs.

    The engine, and the adapters' `modules` of other distributions, are found through links to them in `folder`, which
    is the runner's own. Naming the folder in which they are installed would put every package beside them, torch and
    triton too, before those of the environment.
    """
    links = folder / "engine"
    links.mkdir(parents=True, exist_ok=True)
    for source in (ENGINE, *_sources(modules)):
        if not (links / source.name).exists():
            (links / source.name).symlink_to(source, target_is_directory=source.is_dir())
    variables = {**environment.variables, "PYTHONPATH": str(links)}
    return [environment.python, "-m", "portability.runner"], variables


def _sources(modules: Sequence[str]) -> Iterator[Path]:
    """Yield the folder or file of each module's outermost package."""
    for name in dict.fromkeys(m.partition(":")[0].partition(".")[0] for m in modules):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            yield Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


# ------------------------------------------------------------------------------------------- finding a Python


_PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def find_python(versions: Sequence[str], python: str | None = None) -> str:
    """Return an executable of one of `versions` that can make virtual environments, earlier ones preferred.

    A name on PATH is not enough: version managers leave names behind which only say that nothing is selected, and some
    distributions package `ensurepip` apart. Raises `CreationError` with what was tried.
    """
    tried: list[str] = []
    for executable in [python] if python else _candidates(versions):
        version, why = _ask(executable)
        if version in versions:
            return executable
        tried.append(f"{executable}: {why or f'is Python {version}'}")
    wanted = " or ".join(versions)
    advice = f"install Python {wanted}, or name one with --python PATH"
    raise CreationError(f"Python {wanted} is needed and none was found; {advice}. Tried: {'; '.join(tried) or 'none'}")


def _candidates(versions: Sequence[str]) -> Iterator[str]:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for version in versions:
        if sys.version_info[:2] == tuple(map(int, version.split("."))):
            yield sys.executable
        yield from (found for f in folders if (found := shutil.which(f"python{version}", path=f)))
    yield from (found for f in folders if (found := shutil.which("python3", path=f)))


def _ask(executable: str) -> tuple[str, str]:
    """Return the version of `executable`, or an empty one and why it is of no use."""
    try:
        answer = subprocess.run([executable, "-c", _PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    if answer.returncode != 0:
        return "", (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
    return answer.stdout.strip(), ""


# -------------------------------------------------------------------------------------------------- building


_VERSIONS = """
import json, platform, torch, triton
print(json.dumps({"python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__}))
"""


def _build(recipe: Recipe, folder: Path, base: str, say: Say) -> Environment:
    say(f"{recipe.name}: a virtual environment with {base}")
    _run([base, "-m", "venv", str(folder)], "the virtual environment")
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    say(f"{recipe.name}: {', '.join(recipe.packages)}")
    _run([*pip, "install", "--quiet", *recipe.packages], "the packages")
    # A CUDA build of torch brings the Triton that it pins. Two packages of one name would overwrite each other.
    _run([*pip, "uninstall", "--quiet", "--yes", "triton"], "removing torch's Triton")
    for distribution in (recipe.triton, *recipe.also):
        say(f"{recipe.name}: {distribution}")
        _run([*pip, "install", "--quiet", "--no-deps", distribution], distribution)
    versions = json.loads(_run([python, "-c", _VERSIONS], "the first import of torch and triton").splitlines()[-1])
    partial = folder / f"{MARK}.partial"
    partial.write_text(json.dumps({"recipe": recipe.digest, "versions": versions}, indent=1) + "\n")
    partial.replace(folder / MARK)
    say(f"{recipe.name}: made, {_summary(versions)}")
    return Environment(recipe.name, python, versions=versions)


def _run(command: Sequence[str], what: str) -> str:
    """Return what `command` prints. Raises `CreationError` with the last lines of a failure."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=inherited, timeout=3600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CreationError(f"{what}: {error}") from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("WARNING:")]
        raise CreationError("\n".join([f"{what}: exit code {done.returncode} of {' '.join(command)}", *lines[-8:]]))
    return done.stdout


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of an environment, which ends with its process."""
    try:
        import fcntl
    except ImportError:
        raise CreationError("Triton is published for Linux only, and so are these environments") from None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _whole(folder: Path) -> Environment | None:
    mark = folder / MARK
    return _read(mark) if mark.exists() else None


def _read(mark: Path) -> Environment:
    versions = json.loads(mark.read_text())["versions"]
    return Environment(mark.parent.name, str(mark.parent / "bin" / "python"), versions=versions)


def _made_from(folder: Path) -> str:
    return str(json.loads((folder / MARK).read_text())["recipe"])


def _discard(folder: Path) -> None:
    (folder / MARK).unlink(missing_ok=True)  # first, so that nobody takes what is being removed for whole
    if folder.exists():
        shutil.rmtree(folder)


def _summary(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{k} {v}" for k, v in versions.items())
