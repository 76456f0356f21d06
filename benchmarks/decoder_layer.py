"""Time and peak memory of the decoder layer and its plain-torch twin, by length, and where the device's time goes.

    python benchmarks/decoder_layer.py [--tokens 512 2048 4096 16384] [--batch 4] [--out results/decoder_layer.json]
    python benchmarks/decoder_layer.py --show results/decoder_layer.json [--update docs/kernels.md]

Needs a device to time. Prints one table of medians and peaks with ratios, forward and forward with backward, and one
of each part's share of device time by torch's profiler. Running out of memory is a value in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate
from torch.profiler import ProfilerActivity, profile

from portability.kernels.decoder_layer import DecoderLayer
from portability.pages import between

PARTS = ("projections", "attention", "scores", "softmax", "values", "output", "feed-forward")
OUT_OF_MEMORY = "out of memory"
BEGIN, END = "<!-- decoder layer -->", "<!-- end of decoder layer -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048, 4096, 16384])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dim", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print the figures of that file instead of timing")
    parser.add_argument("--update", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    args = parser.parse_args()
    if args.show:
        made = json.loads(args.show.read_text(encoding="utf-8"))
    elif torch.cuda.is_available():
        figures = [measure(args, tokens, backward) for tokens in args.tokens for backward in (False, True)]
        device = torch.cuda.get_device_name()
        where = f"{device}, batch {args.batch}, {args.dim} features, {args.heads} heads, {args.dtype}"
        made = {"where": where, "torch": torch.__version__, "figures": figures}
    else:
        print("no device is visible: this measures one; --show prints the figures of a file", file=sys.stderr)
        return 2
    if args.out:
        args.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    text = render(made)
    if args.update:
        page = args.update.read_text(encoding="utf-8")
        args.update.write_text(between(page, BEGIN, END, text, args.update.name), encoding="utf-8")
    print(text)
    return 0


def render(made: dict[str, Any]) -> str:
    """Return the tables of times and memory, and of shares, as Markdown."""
    heads = ("tokens", "pass", "Triton ms", "torch ms", "torch / Triton", "Triton GB", "torch GB", "torch / Triton")
    times = tabulate(map(times_row, made["figures"]), headers=heads, tablefmt="github", disable_numparse=True)
    parts = [row for f in made["figures"] for row in share_rows(f)]
    share = tabulate(parts, headers=("tokens", "pass", "layer", *PARTS), tablefmt="github", disable_numparse=True)
    return f"{made['where']}; torch {made['torch']}.\n\n{times}\n\nShare of device time:\n\n{share}\n"


def measure(args: argparse.Namespace, tokens: int, backward: bool) -> dict[str, Any]:
    """Return the figures of both layers at one length, from the same weights and input."""
    torch.manual_seed(0)
    dtype = getattr(torch, args.dtype)
    ours = DecoderLayer(args.dim, args.heads).to(args.device, dtype)
    twin = DecoderLayer(args.dim, args.heads, plain=True).to(args.device, dtype)
    twin.load_state_dict(ours.state_dict())
    x = torch.randn(args.batch, tokens, args.dim, device=args.device, dtype=dtype)
    found: dict[str, Any] = {"tokens": tokens, "backward": backward}
    for name, layer in (("triton", ours), ("torch", twin)):
        found[name] = one(layer, x, backward)
        torch.cuda.empty_cache()
    return found


def one(layer: torch.nn.Module, x: torch.Tensor, backward: bool) -> dict[str, Any]:
    """Return milliseconds (quantiles), peak bytes and shares of one layer, or that memory did not suffice."""
    call = step(layer, x, backward)
    try:
        call()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        times = timed(call)
        return {"ms": times, "peak": peak, "shares": shares(call)}
    except torch.cuda.OutOfMemoryError:
        return {"ms": None, "peak": None, "shares": {}, "why": OUT_OF_MEMORY}


def step(layer: torch.nn.Module, x: torch.Tensor, backward: bool) -> Callable[[], None]:
    """Return one forward pass, or a forward and a backward pass."""

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    def both() -> None:
        layer.zero_grad(set_to_none=True)
        layer(x).float().square().mean().backward()

    return both if backward else forward


def timed(call: Callable[[], None], repetitions: int = 20) -> list[float]:
    """Return the 20 % quantile, the median and the 80 % quantile of single calls, in milliseconds."""
    for _ in range(3):
        call()
    samples = []
    for _ in range(repetitions):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        call()
        end.record()
        end.synchronize()
        samples.append(float(start.elapsed_time(end)))
    cut = statistics.quantiles(samples, n=5, method="inclusive")
    return [cut[0], statistics.median(samples), cut[3]]


def shares(call: Callable[[], None]) -> dict[str, float]:
    """Return each part's share of the device's time of all parts, by the ranges that the forward pass records."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    spent = {e.key: e.device_time_total for e in profiler.key_averages() if e.key in PARTS}
    total = sum(spent.values())
    return {p: round(spent[p] / total, 4) for p in PARTS if p in spent and total}


def times_row(f: dict[str, Any]) -> tuple[str, ...]:
    def number(value: float | None, unit: float, form: str) -> str:
        return OUT_OF_MEMORY if value is None else form.format(value / unit)

    def ratio(a: float | None, b: float | None) -> str:
        return f"{a / b:.2f}" if a and b else "-"

    ours, twin = f["triton"], f["torch"]
    ms = [x["ms"][1] if x["ms"] else None for x in (ours, twin)]
    return (
        str(f["tokens"]), "forward and backward" if f["backward"] else "forward",
        number(ms[0], 1, "{:.3f}"), number(ms[1], 1, "{:.3f}"), ratio(ms[1], ms[0]),
        number(ours["peak"], 1e9, "{:.2f}"), number(twin["peak"], 1e9, "{:.2f}"), ratio(twin["peak"], ours["peak"]),
    )  # fmt: skip


def share_rows(f: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (str(f["tokens"]), "both" if f["backward"] else "forward", name,
         *(f"{f[name]['shares'][p]:.0%}" if p in f[name]["shares"] else "" for p in PARTS))
        for name in ("triton", "torch")
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
