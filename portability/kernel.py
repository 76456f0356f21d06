"""What a kernel file exports: a `KernelCase`, its samples, and the blocks that its operator takes.

    CASE = KernelCase(name="vector_add", operator=add, launch=launch_add, reference=torch.add, ...)

A module may export one `CASE`, or several as `CASES` (a list). A case's operator is called as
`operator(*inputs, blocks=blocks)`, its launch as `launch(*inputs, *outputs, blocks)`, its reference
as `reference(*inputs)` with every floating tensor in float64.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from portability.model import CaseInfo, SampleInfo

if TYPE_CHECKING:
    import torch

SWEPT = "sweep-"  # begins the name of a sample of a sweep
Inputs = tuple[Any, ...]  # tensors and plain values, in the operator's order


class Blocks(dict[str, int]):
    """Block sizes, warps and stages of one kernel, frozen and hashable: `kernel[grid](..., **blocks)`.

    Names are those of the kernel's constants and of Triton's launch options; values are int or bool. A dict, since `**`
    of any other mapping costs microseconds a launch.
    """

    def __init__(self, values: Mapping[str, int] | None = None, **more: int) -> None:
        super().__init__({**(values or {}), **more})
        self._hash = hash(tuple(sorted(self.items())))

    def __missing__(self, name: str) -> int:
        raise KeyError(f"no block named {name!r}; there are {', '.join(self) or 'none'}")

    def __hash__(self) -> int:  # type: ignore[override]  # a dict's is None, since it can change
        return self._hash

    def __repr__(self) -> str:
        return f"Blocks({', '.join(f'{k}={v}' for k, v in self.items())})"

    def __or__(self, other: Mapping[str, int]) -> Blocks:  # type: ignore[override]
        return Blocks({**self, **other})

    __ior__ = __or__  # type: ignore[assignment]  # `blocks |= more` names other blocks, and changes none

    def __reduce__(self) -> tuple[Any, ...]:
        return Blocks, (dict(self),)

    def _frozen(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("blocks are frozen; `blocks | {name: value}` makes others")

    __setitem__ = __delitem__ = _frozen
    update = setdefault = pop = popitem = clear = _frozen


PERIOD = 4_194_301  # values that are drawn at most; a prime, so that rows of no usual length repeat each other


def _repeated(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[torch.Tensor], torch.Tensor]]:
    """Return the shape to draw, and what makes `shape` of it: larger ones repeat, since drawing is what takes long."""
    size = math.prod(shape)
    if size <= PERIOD:
        return shape, lambda drawn: drawn
    return (PERIOD,), lambda drawn: drawn.repeat(cdiv(size, PERIOD))[:size].view(shape)


class Draw:
    """Seeded values for one sample, made on the CPU, so that every target is given the same ones.

    `dtype` is the cell's torch dtype, `blocks` the blocks of its target (for sizes such as one past a block).
    """

    def __init__(self, dtype: torch.dtype, blocks: Blocks, seed: int) -> None:
        import torch

        self.dtype = dtype
        self.blocks = blocks
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Normal values of `shape`; integer dtypes get whole numbers of -8 to 8, bool gets both."""
        import torch

        dtype = dtype or self.dtype
        if not dtype.is_floating_point:
            return self.integers(*shape, dtype=dtype)
        count, fill = _repeated(shape)
        values = torch.randn(count, generator=self._generator, dtype=torch.float64) * scale
        return fill(values.to(torch.float32).to(dtype) if dtype.itemsize == 1 else values.to(dtype))

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """Uniform values of `shape` in [low, high), rounded to the dtype."""
        import torch

        count, fill = _repeated(shape)
        values = torch.rand(count, generator=self._generator, dtype=torch.float64) * (high - low) + low
        return fill(values.to(torch.float32).to(dtype or self.dtype))

    def integers(self, *shape: int, low: int = -8, high: int = 9, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Whole numbers of `shape` in [low, high); unsigned dtypes and bool start at 0."""
        import torch

        dtype = dtype or self.dtype
        if dtype is torch.bool or (not dtype.is_floating_point and torch.iinfo(dtype).min == 0):
            low = max(low, 0)
        count, fill = _repeated(shape)
        values = torch.randint(low, high, count, generator=self._generator)
        return fill(values % 2 == 1 if dtype is torch.bool else values.to(dtype))

    def special(self, n: int, nonfinite: bool = True) -> torch.Tensor:
        """`n` values that begin with both zeros, subnormals, the extremes and, if asked, infinities and NaN."""
        import torch

        values = self.normal(n)
        if self.dtype.is_floating_point:
            info = torch.finfo(self.dtype)
            edge = [0.0, -0.0, info.smallest_normal, -info.smallest_normal, info.smallest_normal / 2]
            edge += [info.max, info.min, info.eps, 1.0, -1.0]
            if nonfinite:
                edge += [float("inf"), float("-inf"), float("nan")]
        elif self.dtype is torch.bool:
            edge = [False, True]
        else:
            edge = [0, 1, torch.iinfo(self.dtype).max, torch.iinfo(self.dtype).min]
        head = torch.tensor(edge[:n], dtype=torch.float64 if self.dtype.is_floating_point else torch.int64)
        values[: len(head)] = head.to(self.dtype)
        return values

    def transposed(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same values and shape, with the last two dimensions' strides swapped."""
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)

    def strided(self, tensor: torch.Tensor, step: int = 2) -> torch.Tensor:
        """The same values and shape, every `step`-th element of a wider tensor along the last dimension."""
        wide = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] * step))
        wide[..., ::step] = tensor
        return wide[..., ::step]

    def offset(self, tensor: torch.Tensor, elements: int = 1) -> torch.Tensor:
        """The same values and layout, starting `elements` into a larger storage, so that it is misaligned."""
        larger = tensor.new_zeros(tensor.numel() + elements)
        larger[elements:] = tensor.reshape(-1)
        return larger[elements:].view(tensor.shape)


registered: dict[str, KernelCase] = {}  # every case of an imported module, for operators that look up their blocks


@dataclass(frozen=True)
class Sample:
    """A named input of a case. Its name is part of a test's id: letters, digits, `.`, `_`, `-` and `:`."""

    name: str
    inputs: Callable[[Draw], Inputs]
    bench: bool = False  # timed, and run only where it is timed
    quick: bool = False  # the one that compile-only targets take without --full
    dtypes: tuple[str, ...] = ()  # empty means every dtype of the case


@dataclass(frozen=True)
class Cost:
    """What one call must at least do: bytes moved (inputs once, outputs once) and operations."""

    bytes: float
    flops: float = 0.0
    unit: str = ""  # the matrix unit's dtype where it does the work: "float16"; empty for the vector units


@dataclass(frozen=True)
class Sweep:
    """Inputs by size, for curves of time over size: `portability bench`. Its samples are named `sweep-SIZE`."""

    sizes: tuple[int, ...]  # powers of two
    inputs: Callable[[Draw, int], Inputs]
    axis: str = "elements"  # what a size counts


@dataclass(frozen=True, kw_only=True)
class KernelCase:
    """One operation under test. Only the first five fields must be given.

    operator   the public function, `operator(*inputs, blocks=None)`; returns a tensor or a tuple of them
    reference  the same in torch, called with floating inputs in float64; must not call the operator
    launch     the timed part, `launch(*inputs, *outputs, blocks)`: neither allocation nor checks
    chain      the unfused torch operations at the cell's dtype; what a plain torch user gets (default: reference)
    terms      Σ|terms| per output element from the float64 inputs, for the tolerance (default: the reference on
               absolute values). A tuple where the operator returns one.
    torch      what is timed against (default: chain)
    cost       bytes and operations from the inputs and outputs
    blocks     the case's own default blocks
    space      name -> values to search when tuning
    sweep      inputs by size, for curves
    accumulates  the precision in which the kernel sums, by the name that `compare.UNIT_ROUNDOFF` has for it; or that by
               the dtype of the first operand, where others are summed in float32
    binaries   the most distinct binaries that all samples of one dtype and target may need
    mutates    positions of inputs that the operator is meant to write
    options    launch options that the case is about, with their backends (API probes)
    """

    name: str
    operator: Callable[..., Any]
    reference: Callable[..., Any]
    samples: Sequence[Sample]
    dtypes: Sequence[str]
    launch: Callable[..., None] | None = None
    chain: Callable[..., Any] | None = None
    terms: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None
    cost: Callable[..., Cost] | None = None
    blocks: Blocks = field(default_factory=Blocks)
    space: Mapping[str, Sequence[int]] = field(default_factory=dict)
    sweep: Sweep | None = None
    accumulates: str | Mapping[str, str] = "float32"
    binaries: int | None = None
    mutates: tuple[int, ...] = ()
    deterministic: bool = True
    loosened: tuple[float, str] | None = None  # a factor on the tolerance, and the written reason
    group: str = ""  # the language group of an API probe
    names: tuple[str, ...] = ()  # the language names that a probe is about
    basic: bool = False  # a probe that a run without --full takes
    vendor: str = ""  # the backend whose own extension a probe is about
    composed: bool = False  # made of other cases' kernels: a quick run does not compile them once more

    def __post_init__(self) -> None:
        problems = [
            f"name {self.name!r}: letters, digits, '.', '_' and ':' only"
            for _ in [0]
            if not re.fullmatch(r"[A-Za-z0-9_.:]+", self.name)
        ]
        problems += [
            f"sample {s.name!r}: letters, digits, '.', '_', '-' and ':' only"
            for s in self.samples
            if not re.fullmatch(r"[A-Za-z0-9_.:-]+", s.name)
        ]
        names = [s.name for s in self.samples]
        problems += [f"sample {n!r} twice" for n in sorted(set(names)) if names.count(n) > 1]
        if not self.samples:
            problems.append("no samples")
        if not self.dtypes:
            problems.append("no dtypes")
        for s in self.samples:
            problems += [f"sample {s.name!r}: dtype {d!r} is not of the case" for d in s.dtypes if d not in self.dtypes]
        if self.loosened is not None and not (self.loosened[0] > 1 and self.loosened[1].strip()):
            problems.append("loosened: a factor above 1 and a written reason are needed")
        if problems:
            raise ValueError(f"kernel case {self.name!r}: {'; '.join(problems)}")
        registered[self.name] = self

    def sample(self, name: str) -> Sample:
        """Return the sample of that name. Raises `KeyError` with the choices."""
        for s in self.samples:
            if s.name == name:
                return s
        size = name.removeprefix(SWEPT)
        if self.sweep is not None and name.startswith(SWEPT) and size.isdigit():
            return Sample(name, partial(_at_size, self.sweep, int(size)), bench=True)
        raise KeyError(f"{self.name}: no sample {name!r}; there are {', '.join(s.name for s in self.samples)}")

    def info(self, file: str = "") -> CaseInfo:
        """Return what the table and the tests need of this case, without torch."""
        quick = next((s.name for s in self.samples if s.quick), self.samples[0].name)
        samples = tuple(SampleInfo(s.name, s.bench, s.name == quick or s.quick, tuple(s.dtypes)) for s in self.samples)
        return CaseInfo(
            self.name, tuple(self.dtypes), samples, file, self.group, tuple(self.names),
            (self.operator.__doc__ or "").strip().split("\n")[0], dict(self.blocks), self.binaries, self.basic,
            {name: tuple(values) for name, values in self.space.items()},
            self.sweep.sizes if self.sweep else (), self.sweep.axis if self.sweep else "",
            self.composed, self.vendor,
        )  # fmt: skip


def _at_size(sweep: Sweep, size: int, draw: Draw) -> Inputs:
    return sweep.inputs(draw, size)


_resolved: dict[tuple[str, Any, Any], Blocks] = {}  # by kernel, device and dtype
_until_forgotten: list[dict[Any, Any]] = [_resolved]


def blocks_for(kernel: str, tensor: torch.Tensor) -> Blocks:
    """Return the blocks of `kernel` for the device and dtype of `tensor`: what an operator uses when given none.

    Resolved once per kernel, device and dtype from the adapters' tables (see `portability.backend`).
    """
    key = kernel, tensor.device, tensor.dtype
    blocks = _resolved.get(key)
    if blocks is None:
        resolve = importlib.import_module("portability.backend").resolve
        blocks = _resolved[key] = resolve(kernel, tensor.device, str(tensor.dtype).removeprefix("torch."))
    return blocks


def forget_blocks() -> None:
    """Look blocks up again from now on: another target's are meant."""
    for kept in _until_forgotten:
        kept.clear()


def kept_until_forgotten() -> dict[Any, Any]:
    """Return a dict that `forget_blocks` empties: for what is made with blocks that were looked up."""
    kept: dict[Any, Any] = {}
    _until_forgotten.append(kept)
    return kept


def cdiv(a: int, b: int) -> int:
    """Return a / b rounded up, for positive b."""
    return -(-a // b)


def powers_of_2(first: int, last: int) -> tuple[int, ...]:
    """Return 2^first to 2^last, the sizes of a sweep."""
    return tuple(1 << exponent for exponent in range(first, last + 1))


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is at least n (1 for n of 0 and 1)."""
    return 1 << max(0, n - 1).bit_length()


@dataclass(frozen=True)
class Discovered:
    """The cases that were found, and the modules that could not be imported, with why."""

    cases: Mapping[str, KernelCase]
    files: Mapping[str, str]  # case name -> file
    errors: Mapping[str, str]  # module -> "ImportError: …"


def discover(modules: Sequence[str] = ()) -> Discovered:
    """Return every kernel case: bundled ones, those of entry points `portability.kernels`, and `modules`.

    A package is searched with all its modules. A module that fails to import is reported and hides nothing else.
    Raises `ValueError` if two files export a case of one name.
    """
    cases: dict[str, KernelCase] = {}
    files: dict[str, str] = {}
    errors: dict[str, str] = {}
    names = ["portability.kernels", *sorted({e.value for e in entry_points(group="portability.kernels")}), *modules]
    for name in dict.fromkeys(names):
        for module in _modules(name, errors):
            for case in cases_of(module):
                file = module.__file__ or module.__name__
                if cases.get(case.name, case) is not case:
                    raise ValueError(f"kernel case {case.name!r} is exported by both {files[case.name]} and {file}")
                cases[case.name], files[case.name] = case, file
    return Discovered(cases, files, errors)


def cases_of(module: ModuleType) -> list[KernelCase]:
    """Return what a kernel module exports as `CASE` and `CASES`."""
    found = [*([module.CASE] if hasattr(module, "CASE") else []), *getattr(module, "CASES", [])]
    for case in found:
        if not isinstance(case, KernelCase):
            raise ValueError(f"{module.__file__}: CASE and CASES hold KernelCase, not {type(case).__name__}")
    return found


def _modules(name: str, errors: dict[str, str]) -> Iterator[ModuleType]:
    module = _import(name, errors)
    if module is None:
        return
    yield module
    for path in getattr(module, "__path__", []):
        for found in sorted(pkgutil.iter_modules([path]), key=lambda m: m.name):
            yield from _modules(f"{name}.{found.name}", errors)


def _import(name: str, errors: dict[str, str]) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception as error:  # a kernel file may raise anything; it is named, and the others still count
        errors[name] = f"{type(error).__name__}: {error}"
        return None


def relative(file: str, root: Path) -> str:
    """Return `file` relative to `root` where it lies below it, else its last two parts: no path of one machine."""
    path = Path(file).resolve()
    for base in (root.resolve(), Path(__file__).resolve().parent.parent):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return "/".join(path.parts[-2:])
