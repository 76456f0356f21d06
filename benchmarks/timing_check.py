"""Compare the harness's times with Triton's on the same buffers, on this machine's GPU.

    python benchmarks/timing_check.py

For each bench sample of the chosen kernels: the median of a plain launch against `triton.testing.do_bench`, the median
of graph replay against `do_bench_cudagraph` (which flushes no cache, so that it is the lower one where data stays in
the cache), spread, and the fraction of the ceiling. Exits with 1 if a stable launch differs by more than a tenth.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from tabulate import tabulate
from triton.testing import do_bench, do_bench_cudagraph

from portability.accelerator import Accelerator
from portability.backend import discover, look_up_blocks
from portability.device import DeviceBackend
from portability.kernel import Cost, Draw, KernelCase, Sample
from portability.kernel import discover as discover_kernels
from portability.timing import SHORT_MS, bench, device_lock, measure, quantiles

ALLOWED = 0.10  # between two medians of a stable time
SMALL = (2**12, 2**20)  # elements: launches that the host dominates, which only a graph shows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=["vector_add", "softmax", "matmul"])
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--warmup", type=float, default=25.0, help="ms")
    parser.add_argument("--rep", type=float, default=100.0, help="ms")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("timing_check: torch sees no GPU here", file=sys.stderr)
        return 2
    backend = next(b for b in discover().values() if isinstance(b, DeviceBackend) and _owns(b))
    target = next(t for t in backend.status() if t.index == 0)
    device = Accelerator(0)
    rows, wrong = [], []
    with device_lock(backend.device_uuid(target), exclusive=True), torch.no_grad():
        for name, call, torch_call, cost in _calls(arguments, backend, target.id):
            row, ratio, stable = _compare(device, name, call, torch_call, cost, arguments)
            rows.append(row)
            if stable and abs(ratio - 1) > ALLOWED:
                wrong.append(f"{name}: {ratio:.3f} of do_bench")
    print(f"{target.device}, torch {target.versions['torch']}, triton {target.versions['triton']}")
    print(tabulate(rows, headers="keys", floatfmt=".4g"))
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def _owns(backend: DeviceBackend) -> bool:
    try:
        return bool(backend.device_target(0))
    except LookupError:
        return False


def _calls(
    arguments: argparse.Namespace, backend: DeviceBackend, target: str
) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], Cost | None]]:
    dtype = getattr(torch, arguments.dtype)
    yield from (_addition(n, dtype) for n in SMALL)
    cases = discover_kernels().cases
    for name in arguments.kernels:
        case = cases[name]
        blocks = look_up_blocks(backend, name, target, arguments.dtype, case.blocks).blocks
        for sample in case.samples:
            if sample.bench and (not sample.dtypes or arguments.dtype in sample.dtypes):
                yield from _sample(case, sample, Draw(dtype, blocks, zlib.crc32(sample.name.encode())))


def _addition(n: int, dtype: torch.dtype) -> tuple[str, Callable[[], Any], Callable[[], Any], Cost]:
    x, y = torch.randn(2, n, device="cuda").to(dtype)
    out = torch.empty_like(x)
    return f"torch.add {n}", lambda: torch.add(x, y, out=out), lambda: x + y, Cost(bytes=3 * x.nbytes)


def _sample(
    case: KernelCase, sample: Sample, draw: Draw
) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], Cost | None]]:
    inputs = tuple(x.cuda() if isinstance(x, torch.Tensor) else x for x in sample.inputs(draw))
    made = case.operator(*inputs, blocks=draw.blocks)
    outputs = made if isinstance(made, tuple) else (made,)
    launch, plain = case.launch, case.torch or case.chain or case.reference
    assert launch is not None, f"{case.name} has bench samples and no launch"
    cost = case.cost(*inputs, *outputs) if case.cost else None
    yield f"{case.name} {sample.name}", lambda: launch(*inputs, *outputs, draw.blocks), lambda: plain(*inputs), cost


def _compare(
    device: Accelerator, name: str, call: Callable[[], Any], torch_call: Callable[[], Any], cost: Cost | None,
    arguments: argparse.Namespace,
) -> tuple[dict[str, Any], float, bool]:  # fmt: skip
    theirs = do_bench(call, warmup=int(arguments.warmup), rep=int(arguments.rep), return_mode="median")
    p20, ours, p80 = quantiles(bench(device, call, arguments.warmup, arguments.rep))
    timing = measure(device, call, torch_call, cost, arguments.warmup, arguments.rep)
    stable = (p80 - p20) / ours <= ALLOWED
    row: dict[str, Any] = {
        "call": name,
        "launch ms": ours,
        "do_bench ms": theirs,
        "ratio": ours / theirs,
        "spread": (p80 - p20) / ours,
    }
    if ours < SHORT_MS:
        row["graph ms"] = statistics.median(bench(device, call, arguments.warmup, arguments.rep, graph=True))
        row["do_bench_cudagraph ms"] = do_bench_cudagraph(call, rep=int(arguments.rep), return_mode="median")
    row |= {"method": timing.method, "median ms": timing.median, "torch ms": timing.torch_median}
    row |= {"GB/s": timing.gbps, "ceiling": timing.ceiling, "of": timing.ceiling_of}
    return row, ours / theirs, stable


if __name__ == "__main__":
    sys.exit(main())
