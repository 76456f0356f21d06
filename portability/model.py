"""The nouns of the harness: targets, cells, evidence, outcomes, observations, expectations.

Every value is frozen and made of plain Python, so that it crosses a pipe as JSON, and a table can be
drawn from it on a machine that has neither torch nor triton.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

DEFAULT_ENVIRONMENT = "default"


class Word(str, Enum):
    """A string enumeration that prints as its value (`enum.StrEnum` is not in Python 3.10)."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


class Evidence(Word):
    """How far a cell got, strongest first. One kind is never shown as another."""

    RAN = "ran"  # executed on the target's own hardware
    EMULATED = "emulated"  # code made for the target, executed on a CPU
    INTERPRETED = "interpreted"  # Triton's interpreter on the CPU
    COMPILED = "compiled"  # down to the target's binary, never executed
    LOWERED = "lowered"  # some way down, short of a binary
    NONE = "none"

    @property
    def rank(self) -> int:
        """Larger is stronger; `none` is 0."""
        return _RANK[self]

    @property
    def executes(self) -> bool:
        """Whether values were computed, so that they could be compared."""
        return self in (Evidence.RAN, Evidence.EMULATED, Evidence.INTERPRETED)


class Outcome(Word):
    """What happened to a cell, worst last within a square (see `severity`)."""

    PASS = "pass"
    IGNORED = "ignored"  # the backend accepted an option and did nothing with it
    UNSUPPORTED = "unsupported"  # the harness or the backend says by name that it cannot do this
    UNAVAILABLE = "unavailable"  # nothing here could try
    NONDETERMINISTIC = "nondeterministic"
    WRONG = "wrong"
    RACE = "race"
    UNDEFINED_VALUE = "undefined_value"
    OUT_OF_BOUNDS = "out_of_bounds"  # what is read there is undefined, and races: they follow from it
    COMPILE_ERROR = "compile_error"
    OUT_OF_RESOURCES = "out_of_resources"
    LAUNCH_ERROR = "launch_error"
    TIMEOUT = "timeout"
    CRASH = "crash"
    HARNESS_ERROR = "harness_error"

    @property
    def severity(self) -> int:
        """Larger is worse; a square of the table shows the worst of its cells."""
        return _SEVERITY[self]


_RANK = {evidence: rank for rank, evidence in enumerate(reversed(Evidence))}
_SEVERITY = {outcome: severity for severity, outcome in enumerate(Outcome)}


class Standing(Word):
    """An observation against what `matrix.toml` declares."""

    AS_EXPECTED = "as_expected"
    UNKNOWN = "unknown"  # the evidence reached here cannot decide the rule
    REGRESSION = "regression"  # no rule, and not a pass
    STALE = "stale"  # a rule, and a pass
    MISMATCH = "mismatch"  # a rule, and another failure than it names
    EXPIRED = "expired"  # the rule's date or version is over

    @property
    def fails(self) -> bool:
        """Whether a run with such a cell does not end as expected."""
        return self not in (Standing.AS_EXPECTED, Standing.UNKNOWN)


@dataclass(frozen=True)
class Target:
    """One column of the table: a backend and an architecture."""

    id: str  # "cuda:90", "hip:gfx942", "interpreter"
    backend: str  # the adapter's name
    title: str = ""  # "H100, H200"; empty means the id
    environment: str = DEFAULT_ENVIRONMENT
    evidence: Evidence = Evidence.NONE  # the most that can be reached here
    why: str = ""  # why no more than that
    remedy: str = ""  # the command or condition that gives the next level
    device: str = ""  # the device's own name, where there is one
    index: int | None = None  # torch's ordinal of that device
    memory: int = 0  # bytes of that device
    versions: Mapping[str, str] = field(default_factory=dict)  # of the packages in its environment

    @property
    def heading(self) -> str:
        """What the table calls the column."""
        return self.title or self.id


@dataclass(frozen=True)
class SampleInfo:
    """What can be said of a sample without making it."""

    name: str
    bench: bool = False
    quick: bool = False
    dtypes: tuple[str, ...] = ()  # empty means every dtype of the case


@dataclass(frozen=True)
class CaseInfo:
    """What can be said of a kernel case without importing it."""

    name: str
    dtypes: tuple[str, ...]
    samples: tuple[SampleInfo, ...]
    file: str = ""  # relative to the project, for people
    group: str = ""  # empty for a kernel, the language group for an API probe
    names: tuple[str, ...] = ()  # names of the language that a probe is about
    summary: str = ""
    blocks: Mapping[str, int] = field(default_factory=dict)  # the case's own default
    binaries: int | None = None  # the most distinct binaries that it allows per dtype and target
    basic: bool = False  # a probe that a run without --full takes
    space: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # what tuning searches
    sweep: tuple[int, ...] = ()  # the sizes of its sweep
    sweep_axis: str = ""  # what such a size counts
    composed: bool = False  # made of other cases' kernels: a quick run does not compile them once more
    vendor: str = ""  # the backend whose own extension a probe is about: others are not expected to have it


@dataclass(frozen=True)
class Cell:
    """case × dtype × sample × target × environment: one test."""

    kernel: str
    dtype: str
    sample: str
    target: str
    environment: str = DEFAULT_ENVIRONMENT

    @property
    def id(self) -> str:
        """The pytest id; the default environment stays out of it."""
        parts = [self.kernel, self.dtype, self.sample, self.target]
        if self.environment != DEFAULT_ENVIRONMENT:
            parts.append(self.environment)
        return "-".join(parts)


@dataclass(frozen=True)
class Finding:
    """A warning of a cell: it does not decide the outcome, and is never lost."""

    code: str  # "grid-limit", "fp8-saturation", …
    message: str
    line: str = ""  # "kernels/matmul.py:41"
    targets: tuple[str, ...] = ()  # where it bites; empty means here


@dataclass(frozen=True)
class Accuracy:
    """The largest error against the float64 reference, relative to what was allowed."""

    error: float  # largest absolute error
    tolerance: float  # what was allowed at that element
    ratio: float  # largest error / tolerance over all elements; more than 1 is wrong


@dataclass(frozen=True)
class Resources:
    """What one binary needs, and what the target has. Bytes unless said."""

    kernel: str
    registers: int | None = None  # per thread
    spills: int | None = None  # bytes of local memory written for want of registers
    stack: int | None = None
    shared: int | None = None
    shared_limit: int | None = None
    threads: int | None = None  # per program
    threads_limit: int | None = None
    tensor_memory: int | None = None  # columns
    buffers: Mapping[str, int] = field(default_factory=dict)  # further memories of a program, bytes
    occupancy: float | None = None  # fraction of the warps that a compute unit can hold
    occupancy_limit: str = ""  # what bounds it: registers, shared, warps, blocks
    matrix: str = ""  # the matrix instruction found in the assembly, or "scalar"
    special: tuple[str, ...] = ()  # its atomic, float8 and tensor copy instructions: "atom.add.bf16x2"
    hash: str = ""  # Triton's hash of the compiled kernel
    config: str = ""  # the autotune configuration, where there is one


@dataclass(frozen=True)
class Tuning:
    """One tuning of an autotuned kernel: every key is tuned once a process."""

    kernel: str
    key: str  # what the choice was made for: sizes and dtypes
    configurations: int  # that were tried
    seconds: float  # that all trials took; compiling is most of it
    chosen: str = ""  # the configuration that was the fastest; empty where none was timed


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one launch, by quantile, with the machine's own ceiling in the same run."""

    median: float
    p20: float
    p80: float
    method: str  # "launch" or "graph"
    repetitions: int
    warmup_ms: float
    rep_ms: float
    stable: bool
    spread: float = 0.0  # (p80 - p20) / median
    launch_median: float | None = None  # a plain launch, where the method is a graph's replay
    torch_median: float | None = None  # torch's own operation on the same buffers
    gbps: float | None = None  # 10^9 bytes of the case's cost model per second
    tflops: float | None = None
    ceiling: float | None = None  # fraction of the ceiling that bounds the case
    ceiling_of: str = ""  # "copy 4257 GB/s" or "matmul float16 780 TFLOP/s"
    performance: bool = True  # False for the interpreter: no measure of speed


@dataclass(frozen=True)
class Recorded:
    """What the baseline of a Triton minor version holds for a probe's cell."""

    triton: str  # "3.9": of the cell's own version, or of the nearest older one that has a baseline
    outcome: Outcome = Outcome.PASS
    how: str = ""  # native, mixed or emulated, as the assembly told


@dataclass(frozen=True)
class Observation:
    """The record of one cell."""

    cell: Cell
    evidence: Evidence
    outcome: Outcome
    stage: str = ""  # open, inputs, compile, launch, run, compare, time
    detail: str = ""  # the first lines of what went wrong
    line: str = ""  # the kernel's own line, "file:line"
    warnings: tuple[Finding, ...] = ()
    accuracy: Accuracy | None = None
    resources: tuple[Resources, ...] = ()
    timing: Timing | None = None
    launches: int = 0
    binaries: int = 0  # distinct ones
    blocks: Mapping[str, int] = field(default_factory=dict)
    blocks_from: str = ""  # where they came from: "rocm.toml matmul hip:gfx942"
    seconds: float = 0.0
    compile_seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)  # triton and torch of the cell's environment
    device: str = ""
    when: str = ""  # UTC, ISO 8601
    how: str = ""  # of a probe, as the assembly tells: native, mixed or emulated
    recorded: Recorded | None = None  # of a probe: what its baseline holds
    tunings: tuple[Tuning, ...] = ()  # that this cell was the first to need


@dataclass(frozen=True)
class Expectation:
    """A declared deviation from `pass`, with its reason. Names are patterns, any of which may match."""

    reason: str
    outcome: tuple[Outcome, ...]
    place: str  # "matrix.toml: [[expect]] 3"
    kernel: tuple[str, ...] = ("*",)
    dtype: tuple[str, ...] = ("*",)
    sample: tuple[str, ...] = ("*",)
    target: tuple[str, ...] = ("*",)
    environment: tuple[str, ...] = ("*",)
    match: str = ""  # searched in the observation's detail
    triton: str = ""  # a version range
    expires: str = ""  # a date, or a version range
    link: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the one judging function says of one observation."""

    standing: Standing
    why: str
    expectation: Expectation | None = None


T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return `value` (a noun of this module) as JSON's own types; defaults are left out, for small files."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {n: to_json(v) for n, default in _fields(type(value)) if (v := getattr(value, n)) != default}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    if isinstance(value, float):
        # JSON has neither infinities nor NaN; and nothing that is measured here has more than six digits.
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    return value


def from_json(kind: type[T], data: Any) -> T:
    """Return the noun `kind` that `to_json` wrote. Raises `ValueError` naming the field that does not fit."""
    try:
        return typing.cast(T, _reader(typing.cast(Any, kind))(data))
    except _Misfit as misfit:
        raise ValueError(f"{'.'.join((kind.__name__, *reversed(misfit.path)))}: {misfit}") from None


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the names of a noun's fields, each with its default; that of one that must be given equals nothing."""
    made = dataclasses.MISSING
    return tuple(
        (f.name, f.default if f.default_factory is made else f.default_factory()) for f in dataclasses.fields(kind)
    )


class _Misfit(ValueError):
    """Data that does not fit; fields are added to `path` on the way out, innermost first."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


_Reader = Callable[[Any], Any]


@functools.cache
def _reader(kind: Any) -> _Reader:
    """Return the function that reads a `kind`: made once, since files hold tens of thousands of nouns."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        some = _reader(next(a for a in args if a is not type(None)))
        return lambda data: None if data is None else some(data)
    if origin is tuple:
        return _list_reader(_reader(args[0]))
    if origin is not None:  # Mapping[str, X]
        return _mapping_reader(_reader(args[1]))
    if dataclasses.is_dataclass(kind):
        return _noun_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _word_reader(kind)
    return _plain_reader(kind)


def _noun_reader(kind: Any) -> _Reader:
    readers = {name: _reader(hint) for name, hint in typing.get_type_hints(kind).items()}

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _Misfit(f"a table is needed, not {data!r}")
        values = {}
        for name, value in data.items():
            if name not in readers:
                raise _Misfit(f"unknown field {name!r}; known are {', '.join(readers)}")
            try:
                values[name] = readers[name](value)
            except _Misfit as misfit:
                misfit.path.append(name)
                raise
        try:
            return kind(**values)
        except TypeError as error:
            raise _Misfit(str(error)) from None

    return read


def _list_reader(item: _Reader) -> _Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, (list, tuple)):
            raise _Misfit(f"a list is needed, not {data!r}")
        return tuple([item(v) for v in data])

    return read


def _mapping_reader(item: _Reader) -> _Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _Misfit(f"a table is needed, not {data!r}")
        values = {}
        for key, value in data.items():
            try:
                values[str(key)] = item(value)
            except _Misfit as misfit:
                misfit.path.append(str(key))
                raise
        return values

    return read


def _word_reader(kind: Any) -> _Reader:
    words = {word.value: word for word in kind}

    def read(data: Any) -> Any:
        if not isinstance(data, str) or data not in words:
            raise _Misfit(f"{data!r} is none of {', '.join(words)}")
        return words[data]

    return read


def _plain_reader(kind: Any) -> _Reader:
    if kind is Any:
        return lambda data: data
    wanted = (int, float) if kind is float else kind

    def read(data: Any) -> Any:
        if kind is float and data in ("inf", "-inf", "nan"):
            return float(data)
        if not isinstance(data, wanted) or (isinstance(data, bool) and kind is not bool):
            raise _Misfit(f"{kind.__name__} is needed, not {data!r}")
        return data

    return read
