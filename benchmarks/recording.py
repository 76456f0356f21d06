"""What recording costs a program on a device, and that it changes nothing: `python -m benchmarks.recording`.

Each program is timed with and without the recorder, in turn; the smallest of several rounds is kept of both. The first
is the worst that can be: launches of one program each, as fast as Python makes them. It fails where a launch is lost or
counted twice, where values differ, and with `--most P` where a program costs more than P percent. Needs a device and
torch for it, and takes less than a minute.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping

import torch
import triton
import triton.language as tl
from tabulate import tabulate

from portability.record.session import Session

ROUNDS = 7
CALLS = 2000  # of an operator, in a round: what a kernel costs once, when it is first seen, is not what a launch costs


@triton.jit  # type: ignore[untyped-decorator]
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


tuned_kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (256, 1024)], key=["n"])(scale_kernel)


def launch_bound(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(CALLS):
        scale_kernel[(1,)](x, y, x.numel(), 2.0, BLOCK=1024)
    return y


def sized_by_a_function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(CALLS):
        scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), 2.0, BLOCK=1024)
    return y


def autotuned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(CALLS):
        tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), 2.0)
    return y


@torch.compile
def _gelu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x) * x.sum()


def generated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(CALLS):
        y = _gelu(x)
    return y


PROGRAMS: Mapping[str, tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], int]] = {
    "one program a launch": (launch_bound, 1024),
    "the same, its grid a function": (sized_by_a_function, 1024),
    "autotuned": (autotuned, 1024),
    "by torch.compile": (generated, 2**16),
    "2²⁴ elements a launch": (sized_by_a_function, 2**24),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=float("inf"), metavar="P", help="percent that a program may cost")
    most, rows, worst = parser.parse_args(argv).most, [], 0.0
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
        assert torch.equal(program(x, y), expected), f"{name}: other values than before it was recorded"
        launches = sum(c.launches for c in session.recorder.recording().launches)
        assert launches > 0, f"{name}: nothing was recorded"
        assert launches % (ROUNDS * CALLS) == 0, f"{name}: {launches} launches of {ROUNDS * CALLS} calls"
        cost, spread = min(recorded) / min(plain) - 1, statistics.quantiles(plain, n=4)
        worst = max(worst, 100 * cost)
        times = (min(plain), min(recorded), spread[0], spread[-1])
        rows.append((name, *(f"{1e3 * t:.2f}" for t in times), f"{cost:+.1%}", launches // (ROUNDS * CALLS)))
    heads = ["program", "ms", "ms recorded", "lower quartile", "upper quartile", "cost", "launches a call"]
    print(tabulate(rows, heads, "github"))
    return int(worst > most)


def _seconds(program: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    program(x, y)
    torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
