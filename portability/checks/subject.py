"""A loose file's `run` and `ref` as an operator under test: called alike each time, judged within a stated tolerance.

`ref` takes no inputs, so that the sum of magnitudes behind each element is not known, and the tolerance is wider than a
kernel case's: an element may be off by

    2⁻¹⁵·max|ref| + 2⁻²¹·max|data|              512 and 8 roundoffs of float32
    + 4·u·max|ref|    for u of float16 or bfloat16, where tensors of these were made: intermediates may be in them
    + 2·u·|ref|       for u of the float8 formats

and by what rounding the exact result to the output's dtype does. Integers and bool must be equal.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from portability.checks.hosts import Hosts
from portability.checks.loose import Loose, Spec, UnreadableError, line_in, tensors_of
from portability.checks.visibility import Visibility
from portability.kernel import KernelCase, Sample

C_UNIT = 2.0**-21  # what `portability.compare` multiplies a sum of magnitudes by: C · u of float32
HALVES = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
EIGHTHS = {
    torch.float8_e4m3fn: 2.0**-4, torch.float8_e4m3fnuz: 2.0**-4,
    torch.float8_e5m2: 2.0**-3, torch.float8_e5m2fnuz: 2.0**-3,
}  # fmt: skip
SAMPLE = "run"
MOST = 1 << 24  # stored lanes that are kept of a launch of which only some programs run


class Subject:
    """The file's `run` on one device, as a kernel case without inputs.

    `data` stands for the file's own `data` while `run` is called; `watch(session)` is to be called when a session is
    opened, so that a launch of which only some programs run is judged by what these stored.
    """

    def __init__(self, loose: Loose, device: str, data: Callable[[], Any] | None = None) -> None:
        assert loose.run is not None
        self.loose, self.device, self.data = loose, device, data
        self.line = ""  # of the file, where `run` raised
        run = loose.run
        self._run = run if loose.takes_device else lambda _: run()  # type: ignore[call-arg]
        self._dtypes: set[torch.dtype] = set()
        self._expected: tuple[torch.Tensor, ...] | None = None
        self._made: tuple[torch.Tensor, ...] = ()
        self._session: Any = None
        self._hosts: Hosts | None = None
        self._stored: list[Any] = []
        self._places: list[str] | None = None  # of each stored block, where they are asked for
        self._lanes = 0

    def case(self) -> KernelCase:
        """Return the kernel case."""
        return KernelCase(
            name=self.loose.name, operator=self.operator, reference=self.reference, terms=self.terms,
            samples=[Sample(SAMPLE, lambda _: ())], dtypes=["float32"],
        )  # fmt: skip

    def operator(self, blocks: Any = None) -> tuple[torch.Tensor, ...]:
        """Call `run` from the same state as every time."""
        self.loose.restore()
        self._stored, self._lanes, self._places = [], 0, None if self._places is None else []
        known = len(self._session.launches) if self._session is not None else 0
        own = getattr(self.loose.module, "data", None)
        if self.data is not None:
            self.loose.module.data = self.data  # type: ignore[attr-defined]
        try:
            with _Dtypes(self._dtypes), self._hosts or contextlib.nullcontext():
                made = self._run(self.device)
        except (Exception, SystemExit) as error:
            self.line = line_in(error, self.loose.path)
            if isinstance(error, SystemExit):  # which would end the runner, and be taken for a crash
                raise RuntimeError(f"run() ends the process by SystemExit({error.code!r})") from error
            raise
        finally:
            if self.data is not None:
                self.loose.module.data = own  # type: ignore[attr-defined]
        self._made = tuple(t.clone() if self._is_held(t) else t for t in tensors_of(made))
        if self._sampled():
            self._fill_in(len(self._session.launches) - known)
        if hasattr(self._session, "access"):
            self._made = self._telling(self._made)
        return self._made

    def reference(self) -> tuple[torch.Tensor, ...]:
        """Return what `ref` says, once; without it, what was computed first. Raises `UnreadableError`."""
        if self._expected is None:
            self._expected = tuple(_widened(t) for t in self._asked())
        return self._expected

    def terms(self) -> tuple[torch.Tensor, ...]:
        """Return what the tolerance is in units of `portability.compare`'s bound."""
        data = _largest(self._data())
        return tuple(self._allowed(t, data) / C_UNIT for t in self.reference())

    def watch(self, session: Any) -> None:
        """Take note of a session in which `run` will be called."""
        self._session = session
        if hasattr(session, "access"):
            session.access.observers.append(self._observe)
            Visibility(session, self._here)
            self._hosts = Hosts(session) if self.loose.takes_device else None

    def locate(self, session: Any, output: int, element: tuple[int, ...]) -> str:
        """Call `run` in an opened session; return the kernel's line that stored an element last, "" if none did."""
        self.watch(session)
        self._places = []
        made = self.operator()
        if output >= len(made) or len(element) != made[output].ndim:
            return ""
        address = _addresses(made[output])[element]
        stores = zip(reversed(self._stored), reversed(self._places), strict=True)
        return next((place for stored, place in stores if address in stored), "")

    def nothing_to_compute(self) -> bool:
        """Whether every output is empty, so that launching nothing is right."""
        return bool(self._made) and not any(t.numel() for t in self._made)

    def _telling(self, made: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the outputs so that what is expected fits: 0.5, 2 or 300 would be cast to an integer, bool or byte."""
        with contextlib.suppress(UnreadableError):  # which is told where the reference is asked for
            return tuple(
                t if t.is_floating_point() or t.dtype == e.dtype
                else t.to(torch.float32 if e.is_floating_point() else torch.int64)
                for t, e in zip(made, self.reference(), strict=True)
            ) if len(made) == len(self.reference()) else made  # fmt: skip
        return made

    def _is_held(self, tensor: torch.Tensor) -> bool:
        """Whether an output is a tensor among the file's globals, which the next call puts back."""
        own = (getattr(self.loose.module, n, None) for n in self.loose.held)
        return any(isinstance(t, torch.Tensor) and t.data_ptr() == tensor.data_ptr() for t in own)

    # ---------------------------------------------------------------------------------------------- tolerance

    def _asked(self) -> tuple[torch.Tensor, ...]:
        if self.loose.reference is None:
            return tuple(t.detach().cpu().clone() for t in self._made)
        self.loose.restore()
        try:
            return tuple(t.detach().cpu() for t in tensors_of(self.loose.reference()))
        except Exception as error:
            raise UnreadableError(f"ref() raises {type(error).__name__}: {error}") from error

    def _data(self) -> tuple[torch.Tensor, ...]:
        data = getattr(self.loose.module, "data", None)
        if not callable(data):
            return ()
        self.loose.restore()
        try:
            return tensors_of(data())
        except TypeError:  # it gives something else beside tensors
            return ()

    def _allowed(self, expected: torch.Tensor, data: float) -> torch.Tensor:
        size = torch.nan_to_num(expected.double().abs(), nan=0.0, posinf=0.0, neginf=0.0)
        largest = float(size.max()) if size.numel() else 0.0
        halves = max((u for d, u in HALVES.items() if d in self._dtypes), default=0.0)
        eighths = max((u for d, u in EIGHTHS.items() if d in self._dtypes), default=0.0)
        return 2 * eighths * size + (2.0**-15 + 4 * halves) * largest + 2.0**-21 * data

    # ------------------------------------------------------------------------------------------ sampled grids

    def _sampled(self) -> bool:
        return self._session is not None and any(w.code == "sampled-grid" for w in self._session.warnings)

    def _observe(self, kind: str, addresses: Any, lanes: Any, size: int, values: Any) -> None:
        if kind == "load" or self._lanes >= MOST or not (self._places is not None or self._partial()):
            return
        self._stored.append(addresses[lanes].copy())
        self._lanes += self._stored[-1].size
        if self._places is not None:
            self._places.append(self._here())

    def _here(self) -> str:
        """Return the innermost line of the file that is being executed."""
        frame = sys._getframe(1)
        while frame.f_back is not None:
            if frame.f_code.co_filename == str(self.loose.path):
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    def _partial(self) -> bool:
        """Whether only some programs of the last launch run."""
        most = getattr(self._session, "sample_grid", None)
        return most is not None and bool(self._session.launches) and math.prod(self._session.launches[-1].grid) > most

    def _fill_in(self, launches: int) -> None:
        """Put the right values where no program that was run stored, so that the rest is judged."""
        stored = np.unique(np.concatenate(self._stored)) if self._stored else np.zeros(0, dtype=np.uint64)
        judge = launches == 1 and self._lanes < MOST
        expected = self.reference()
        for made, right in zip(self._made, expected, strict=False):
            if made.shape == right.shape and made.device.type == "cpu":
                known = torch.from_numpy(np.isin(_addresses(made), stored) & judge)
                made.copy_(torch.where(known, made, right.to(made.dtype)))


class SpecSubject:
    """One kernel of a file's SPEC, launched on tensors that only have the right types: for compiling."""

    def __init__(self, loose: Loose, spec: Spec) -> None:
        self.loose, self.spec = loose, spec

    def case(self) -> KernelCase:
        """Return the kernel case."""
        name = f"{self.loose.name}:{self.spec.name}" if self.spec.name != "SPEC" else self.loose.name
        samples = [Sample(SAMPLE, lambda _: ())]
        return KernelCase(name=name, operator=self.operator, reference=lambda: (), samples=samples, dtypes=["float32"])

    def operator(self, blocks: Any = None) -> tuple[torch.Tensor, ...]:
        """Launch the kernel."""
        spec = self.spec
        given = {n: argument(t, n in spec.divisible) for n, t in spec.signature.items() if n not in spec.constants}
        getattr(self.loose.module, spec.kernel)[(1,)](**given, **spec.constants, **spec.options)
        return ()


POINTEES = {
    "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64, "i1": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
    "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2, "fp8e4b8": torch.float8_e4m3fnuz, "fp8e5b16": torch.float8_e5m2fnuz,
}  # fmt: skip


def argument(kind: str, divisible: bool) -> Any:
    """Return an argument that Triton takes for `kind`, a multiple of 16 or not. Raises `UnreadableError`."""
    if kind.startswith("*"):
        if kind[1:] not in POINTEES:
            raise UnreadableError(f"a spec's type {kind!r} is none of {', '.join('*' + p for p in POINTEES)}")
        return torch.empty(32, dtype=POINTEES[kind[1:]])[0 if divisible else 1 :]
    if kind in ("i1", "u1"):
        return True
    if kind.startswith(("fp", "bf", "f")):
        return 0.5
    numbers = {"i64": (2**40 + 3, 2**40), "u64": (2**63 + 3, 2**63)}
    return numbers.get(kind, (3, 16))[divisible]


class _Dtypes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own class is untyped
    """Collects the dtypes of tensors that are made."""

    def __init__(self, found: set[torch.dtype]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.found.add(made.dtype)
        return made


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    return tensor.float().double() if tensor.dtype.itemsize == 1 else tensor.double()


def _largest(tensors: Sequence[torch.Tensor]) -> float:
    """Return the largest finite magnitude of the floating tensors."""
    some = [_widened(t).abs() for t in tensors if t.is_floating_point() and t.numel()]
    return max((float(torch.nan_to_num(s, nan=0.0, posinf=0.0, neginf=0.0).max()) for s in some), default=0.0)


def _addresses(tensor: torch.Tensor) -> Any:
    """Return the address of each element, in the tensor's shape."""
    at = np.full(tuple(tensor.shape), tensor.data_ptr(), dtype=np.int64)
    for axis, (n, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        steps = np.arange(n) * stride * tensor.element_size()
        at += steps.reshape([-1 if a == axis else 1 for a in range(tensor.ndim)])
    return at.astype(np.uint64)
