"""What recording costs a program on a device, and that it changes nothing: `python -m benchmarks.recording`.

Each program is timed with and without the recorder, in turn; the smallest of several rounds is kept of both. The first
is the worst that can be: launches of one program each, as fast as Python makes them. Needs a device and torch for it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch
import triton
import triton.language as tl
from tabulate import tabulate

from portability.record.session import Session

ROUNDS = 7


@triton.jit  # type: ignore[untyped-decorator]
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


tuned_kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (256, 1024)], key=["n"])(scale_kernel)


def launch_bound(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(2000):
        scale_kernel[(1,)](x, y, x.numel(), 2.0, BLOCK=1024)
    return y


def sized_by_a_function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(2000):
        scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), 2.0, BLOCK=1024)
    return y


def autotuned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(2000):
        tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), 2.0)
    return y


@torch.compile
def _gelu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x) * x.sum()


def generated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(3000):  # what a kernel costs once, when it is first seen, is not what a launch costs
        y = _gelu(x)
    return y


PROGRAMS: Mapping[str, tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], int]] = {
    "one program a launch": (launch_bound, 1024),
    "the same, its grid a function": (sized_by_a_function, 1024),
    "autotuned": (autotuned, 1024),
    "by torch.compile": (generated, 2**16),
    "2²⁴ elements a launch": (sized_by_a_function, 2**24),
}


def main() -> None:
    rows = []
    for name, (program, size) in PROGRAMS.items():
        x, y = torch.randn(size, device="cuda"), torch.zeros(size, device="cuda")
        expected = program(x, y).clone()
        session = Session("device")
        plain, recorded = [], []
        for _ in range(ROUNDS):
            plain.append(_seconds(program, x, y))
            session.start()
            recorded.append(_seconds(program, x, y))
            session.stop()
        same = torch.equal(program(x, y), expected)
        found = session.recorder.recording()
        launches = sum(c.launches for c in found.launches)
        cost = min(recorded) / min(plain) - 1
        rows.append((name, f"{min(plain) * 1e3:.2f}", f"{min(recorded) * 1e3:.2f}", f"{cost:+.1%}", launches, same))
        spread = statistics.quantiles(plain, n=4)
        assert launches, f"{name}: nothing was recorded"
        print(f"{name}: plain rounds from {spread[0] * 1e3:.2f} to {spread[-1] * 1e3:.2f} ms")
    print(tabulate(rows, ["program", "ms", "ms recorded", "cost", "launches", "same values"], "github"))


def _seconds(program: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    program(x, y)
    torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
