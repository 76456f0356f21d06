"""The adapter contract: what a backend supplies, how adapters are found, and how blocks are looked up.

An adapter is one file with one subclass of `Backend` and, beside it, a block table of the same name
(`rocm.py`, `rocm.toml`). Differences between targets are data: class attributes keyed by target id,
by family or by "*".
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import operator
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from portability.kernel import Blocks, Cost, forget_blocks, registered
from portability.model import Evidence, Finding, Outcome, Resources, Target, Timing, Tuning

V = TypeVar("V")

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")


@dataclass(frozen=True)
class Limits:
    """What a launch may ask of a target. Bytes and counts; `None` is no limit known."""

    shared_memory: int | None = None  # bytes a program may use
    threads: int | None = None  # a program
    warp: int | None = None  # threads a warp
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)  # programs along x, y, z
    grid_total: int | None = None  # programs in all
    grid_threads: int | None = None  # threads along x
    grid_empty: bool = True  # whether a grid of no programs is accepted
    tensor_memory: int | None = None  # columns
    registers: int | None = None  # of a compute unit, 32 bits each
    units: int | None = None  # compute units
    unit_shared_memory: int | None = None  # bytes of a compute unit
    unit_warps: int | None = None
    unit_blocks: int | None = None
    unit_barriers: int | None = None  # programs of more than one warp
    partitions: int = 4  # of a compute unit; registers and warps are divided equally
    register_granule: int = 1  # registers a thread is given at a time
    shared_granule: int = 1  # bytes of shared memory a program is given at a time
    shared_reserved: int = 0  # bytes of shared memory that the system adds to every program's
    buffers: Mapping[str, int] = field(default_factory=dict)  # further memories, bytes
    source: str = ""


@dataclass
class Launch:
    """One kernel launch as it was recorded, or the compile that it would have been."""

    kernel: str  # qualified name of the jitted function
    file: str = ""
    line: int = 0
    signature: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)  # divisibility by 16 and the like
    options: Mapping[str, Any] = field(default_factory=dict)  # as written at the launch
    grid: tuple[int, ...] = ()
    num_warps: int = 4
    config: str = ""  # the autotune configuration
    hash: str = ""
    compiled: Any = None  # triton's CompiledKernel, in this process only
    function: Any = None  # the jitted function, in this process only
    stderr: str = ""  # what the compiler wrote on file descriptor 2
    stage: str = ""  # the last stage that the compiler began, where an adapter tells stages apart
    ptxas: str = ""  # the assembler's log, NVIDIA only: registers and spills
    error: BaseException | None = None
    compile_seconds: float = 0.0


class GridError(TypeError):
    """A grid that no launcher takes."""


def axes_of(grid: Any) -> tuple[int, ...]:
    """Return the axes of a grid. Raises `GridError` where they are no whole numbers, as Triton's launchers do."""
    if not hasattr(grid, "__len__") or len(grid) == 0:
        raise GridError(f"the grid is {grid!r}, of type {type(grid).__name__}: a tuple of whole numbers is needed")
    for axis, n in enumerate(grid):
        if not hasattr(n, "__index__"):
            raise GridError(f"axis {axis} of the grid is {n!r}, of type {type(n).__name__}: a whole number is needed")
    return tuple(operator.index(n) for n in grid)


@dataclass(frozen=True)
class Problem:
    """A finding that decides the outcome of a cell."""

    outcome: Outcome
    code: str
    message: str
    line: str = ""


class Session:
    """An opened target. `launches`, `problems` and `warnings` fill while kernels are launched in it.

    `vary(order, poison)` is called before each execution. A correct program cannot see what it changes, so outputs
    that differ between two executions are a fault, and the caller judges which.
    """

    ordered = False  # whether `order` alone decides in which order programs run
    entangled = False  # whether programs of the last execution shared memory that some of them wrote
    streams = False  # whether `elsewhere` makes another stream the current one
    passes_nan = False  # whether NaN goes through minima and maxima that do not say so, where the session can choose
    trace = False  # whether conflicting accesses are explained, where the session can
    configs = "first"  # which configurations an autotuned kernel is launched with where nothing is timed, or "all"

    def __init__(self, target: Target) -> None:
        self.target = target
        self.launches: list[Launch] = []
        self.problems: list[Problem] = []
        self.warnings: list[Finding] = []
        self.tunings: dict[tuple[str, str], Tuning] = {}  # by kernel and key

    @property
    def evidence(self) -> Evidence:
        """What a call that returns has shown."""
        return self.target.evidence

    def vary(self, order: int, poison: int) -> None:
        """Prepare the next execution: `order` 0 is the natural order of programs, 1 reversed, 2 and more shuffled (a
        device keeps its own order); `poison` 0 and 1 fill undefined lanes and unwritten memory with different values.
        """

    def elsewhere(self) -> AbstractContextManager[None]:
        """Make another stream of the device the current one, busy for a while. For sessions with `streams`."""
        return contextlib.nullcontext()

    def undefined(self) -> list[Problem]:
        """Return where values that nobody defined were stored in the last execution, where that is known."""
        return []

    def synchronize(self) -> None:
        """Return when everything launched has ended; raises what the device reports."""

    def resources(self, launch: Launch) -> Resources | None:
        """Return what the launch's binary needs, where it can be read."""
        return None


class Backend:
    """One adapter. Subclasses set the attributes and, where needed, override the methods."""

    name: ClassVar[str] = ""
    environment: ClassVar[str] = "default"  # the one in which the targets are opened, and `status` is asked
    device: ClassVar[str] = "cpu"  # torch's device type for this backend's tensors
    targets: ClassVar[Sequence[str]] = ()  # every target of which something can be said without its hardware
    titles: ClassVar[Mapping[str, str]] = {}
    families: ClassVar[Mapping[str, Sequence[str]]] = {}  # family -> targets, most specific first
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {}  # target, family or "*" -> dtypes claimed
    limits: ClassVar[Mapping[str, Limits]] = {}  # likewise
    guard: ClassVar[int] = 0  # bytes of guard zone around every tensor, where it can be checked after a run

    def prepare(self) -> None:
        """Make kernel files importable, once in a process and before any is imported. No device is touched."""

    def status(self) -> Sequence[Target]:
        """Return every target with the evidence it reaches in this environment, why no more, and the remedy.

        Must have no side effect on a device: no context is created.
        """
        raise NotImplementedError

    def open(self, target: Target) -> AbstractContextManager[Session]:
        """Return a context in which operators called on `tensor_device(target)` launch on the target."""
        raise NotImplementedError

    def tensor_device(self, target: Target) -> str:
        """Return torch's device for inputs."""
        if self.device == "cpu" or not target.evidence.executes:
            return "cpu"
        return f"{self.device}:{target.index or 0}"

    def measure(
        self,
        target: Target,
        call: Callable[[], None],
        torch_call: Callable[[], Any],
        cost: Cost | None,
        warmup_ms: float,
        rep_ms: float,
    ) -> Timing:
        """Return the time of `call`, alone on the device, with that of `torch_call` on the same buffers."""
        raise NotImplementedError(f"backend {self.name!r} does not time")

    def claims(self, target: str, dtype: str) -> bool:
        """Return whether the adapter says that `dtype` works on `target`."""
        return dtype in self.lookup(self.dtypes, target, ())

    def limits_of(self, target: str) -> Limits:
        """Return the limits of a target, by target, family or "*"."""
        return self.lookup(self.limits, target, Limits())

    def families_of(self, target: str) -> list[str]:
        """Return the families that hold `target`, most specific first. A device in no list may override this."""
        return [f for f, members in self.families.items() if target in members]

    def lookup(self, table: Mapping[str, V], target: str, default: V) -> V:
        """Return the entry of `table` for `target`: the target's own, its family's, or that of "*"."""
        for key in (target, *self.families_of(target), "*"):
            if key in table:
                return table[key]
        return default

    def block_table(self) -> Path:
        """Return the adapter's block table, which lies beside its file."""
        return Path(inspect.getfile(type(self))).with_suffix(".toml")

    def device_target(self, ordinal: int) -> str:
        """Return the target id of torch's device `ordinal`. Raises `LookupError` where this is not its backend."""
        raise LookupError(f"{self.name} runs on no device here")


def check_launch(limits: Limits, launch: Launch) -> list[Problem]:
    """Return what of `launch`'s grid and threads the limits refuse: a driver would only say so on hardware."""
    found: list[Problem] = []

    def refuse(code: str, message: str, outcome: Outcome = Outcome.OUT_OF_RESOURCES) -> None:
        line = f"{launch.file}:{launch.line}" if launch.file else ""
        found.append(Problem(outcome, code, f"{launch.kernel}: {message}", line))

    grid = (*launch.grid, 1, 1, 1)[:3]
    for axis, (size, most) in enumerate(zip(grid, limits.grid, strict=True)):
        if size > most:
            refuse("grid-limit", f"grid {launch.grid}: axis {axis} is {size}, at most {most}")
    total = grid[0] * grid[1] * grid[2]
    if limits.grid_total is not None and total > limits.grid_total:
        refuse("grid-total", f"grid {launch.grid}: {total} programs, at most {limits.grid_total}")
    if total == 0 and not limits.grid_empty:
        refuse("grid-empty", f"grid {launch.grid}: no programs, which this target refuses", Outcome.LAUNCH_ERROR)
    threads = launch.num_warps * (limits.warp or 0)
    if limits.threads is not None and threads > limits.threads:
        refuse("threads", f"{launch.num_warps} warps of {limits.warp} are {threads} threads, at most {limits.threads}")
    along = grid[0] * threads
    if limits.grid_threads is not None and along > limits.grid_threads:
        refuse(
            "grid-threads", f"grid {launch.grid} of {threads} threads: {along} along x, at most {limits.grid_threads}"
        )
    return found


# ---------------------------------------------------------------------------------------------- discovery


@cache
def discover(modules: tuple[str, ...] = ()) -> Mapping[str, Backend]:
    """Return every adapter by name: bundled ones, entry points `portability.backends`, and `modules`.

    Raises `ValueError` naming the module if one cannot be imported, has no adapter, or repeats a name.
    """
    package = importlib.import_module("portability.backends")
    found_modules = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    names = [f"portability.backends.{name}" for name in found_modules if not name.startswith("_")]
    names += sorted({e.value for e in entry_points(group="portability.backends")})
    names += modules
    found: dict[str, Backend] = {}
    for name in dict.fromkeys(n for n in names if n != "portability.backends"):
        for backend in _adapters(name):
            if backend.name in found:
                raise ValueError(
                    f"backend {backend.name!r} is defined by {name} and by {type(found[backend.name]).__module__}"
                )
            found[backend.name] = backend
    return found


def _adapters(name: str) -> Iterator[Backend]:
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a module may raise anything while it is imported; it is named either way
        raise ValueError(
            f"backend module {module_name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if attribute:
        yield getattr(module, attribute)()
        return
    classes = [
        c for _, c in inspect.getmembers(module, inspect.isclass)
        if issubclass(c, Backend) and c.__module__ == module.__name__ and c.name
    ]  # fmt: skip
    if not classes:
        raise ValueError(f"backend module {name!r} defines no subclass of Backend with a name")
    for c in classes:
        yield c()


# ------------------------------------------------------------------------------------------------- blocks


DEFAULT = "case default"  # where blocks come from that no table names
BlockTable = Mapping[str, Mapping[str, Mapping[str, Any]]]  # kernel -> selector -> entry


@dataclass(frozen=True)
class Resolved:
    """Blocks, and the tables that they came from."""

    blocks: Blocks
    source: str


def read_blocks(path: Path) -> BlockTable:
    """Return an adapter's block table; an adapter without one has no defaults of its own."""
    import tomllib  # Python 3.11: not needed in a runner, which is given its blocks

    if not path.exists():
        return {}
    try:
        table: BlockTable = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return table


def look_up_blocks(
    backend: Backend, kernel: str, target: str, dtype: str, default: Blocks, override: BlockTable | None = None
) -> Resolved:
    """Return the blocks of `kernel` on `target`: the case's own default, then the adapter's table, then `override`
    (`[blocks]` of matrix.toml), each from the general to the specific: "*", family, target, and each of these with
    "/dtype".
    """
    blocks, source = default, DEFAULT
    tables = [(backend.block_table().name, _adapter_table(backend)), ("matrix.toml", override or {})]
    for name, table in tables:
        entries = table.get(kernel, {})
        for selector in selectors(backend, target, dtype):
            if selector in entries:
                values = {k: v for k, v in entries[selector].items() if isinstance(v, int)}
                blocks = blocks | values
                source = f'{name} [{kernel}."{selector}"]'
    return Resolved(blocks, source)


def selectors(backend: Backend, target: str, dtype: str) -> list[str]:
    """Return the names of the entries that count for `dtype` on `target`, the most specific last."""
    places = ["*", *reversed(backend.families_of(target)), target]
    return [s for place in places for s in (place, f"{place}/{dtype}")]


@cache
def _adapter_table(backend: Backend) -> BlockTable:
    return read_blocks(backend.block_table())


_forced: list[tuple[str, str]] = []  # (backend, target) whose blocks operators take, innermost last


@contextlib.contextmanager
def blocks_of(backend: str, target: str) -> Iterator[None]:
    """Make operators that are called without blocks take those of `target` (inside an opened session)."""
    _forced.append((backend, target))
    forget_blocks()
    try:
        yield
    finally:
        _forced.pop()
        forget_blocks()


def resolve(kernel: str, device: Any, dtype: str) -> Blocks:
    """Return the blocks of `kernel` for `dtype`: of the opened target, or of the adapter that owns `device`."""
    if _forced:
        return _resolve(kernel, *_forced[-1], dtype)
    for backend in discover().values():
        if backend.device == device.type:
            with contextlib.suppress(LookupError):
                return _resolve(kernel, backend.name, backend.device_target(device.index or 0), dtype)
    return registered[kernel].blocks


@cache
def _resolve(kernel: str, backend: str, target: str, dtype: str) -> Blocks:
    return look_up_blocks(discover()[backend], kernel, target, dtype, registered[kernel].blocks).blocks
