"""Time the kernels against what users would take instead, on the device that is here.

    python benchmarks/kernels.py [GROUP...] [--out results/kernels.json]
    python benchmarks/kernels.py --show results/kernels.json [--update docs/speed.md]

Needs a device to time. Each row is one piece of work: medians of single calls with the caches flushed before each (of
graph replays below 50 µs, and where a call waits for the host), ours and its peers in turn in several rounds, so that
ratios mean something where times drift.
A ratio is the peer's time over ours: above 1 ours is faster. The ceiling is measured on the device in this run.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tabulate import tabulate

from portability.pages import between
from portability.timing import CALLS as REPLAYED
from portability.timing import HOST_MS, UNSTABLE, bench, device_lock, measure, quantiles

BEGIN, END = "<!-- kernels -->", "<!-- end of kernels -->"
CALLS = 2000  # of which the host's part is timed
ROUNDS = 4  # in which ours and its peers are timed in turn
OURS = ""  # among them


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="*", help="default: all of them")
    parser.add_argument("--list", action="store_true", help="print the groups")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print the figures of that file instead of timing")
    parser.add_argument("--update", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    parser.add_argument("--warmup", type=float, default=25.0, metavar="MS")
    parser.add_argument("--rep", type=float, default=100.0, metavar="MS")
    args = parser.parse_args()
    if args.show:
        made = json.loads(args.show.read_text(encoding="utf-8"))
    else:
        import torch

        if not torch.cuda.is_available():
            print("kernels: torch sees no GPU here; --show prints the figures of a file", file=sys.stderr)
            return 2
        made = _measure(args)
    text = render(made)
    if args.update:
        page = args.update.read_text(encoding="utf-8")
        args.update.write_text(between(page, BEGIN, END, text, args.update.name), encoding="utf-8")
    print(text)
    for group, why in made.get("failed", {}).items():
        print(f"kernels: {group} failed: {why}", file=sys.stderr)
    return 1 if made.get("failed") else 0


# ------------------------------------------------------------------------------------------------- measuring


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    import torch
    import triton
    import works

    from portability.accelerator import Accelerator

    unknown = [g for g in args.group if g not in (*works.GROUPS, "overhead")]
    if unknown or args.list:
        raise SystemExit(f"kernels: groups are {', '.join((*works.GROUPS, 'overhead'))}; not {', '.join(unknown)}")
    device = Accelerator(0)
    made: dict[str, Any] = {
        "device": torch.cuda.get_device_name(0),
        "host": os.environ.get("PORTABILITY_HOST", ""),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "warmup_ms": args.warmup,
        "rep_ms": args.rep,
        "copy_gbps": device.copy_rate() / 1e9,
        "rows": [],
        "overhead": [],
        "failed": {},
    }
    with device_lock(str(torch.cuda.get_device_properties(0).uuid), exclusive=True), torch.cuda.device(0):
        for name in args.group or (*works.GROUPS, "overhead"):
            began = time.perf_counter()
            try:
                if name == "overhead":
                    made["overhead"] = overhead()
                else:
                    _group(device, works.GROUPS[name], args, made["rows"])
            except Exception as error:  # what other groups came to is kept, and the exit code says that one failed
                made["failed"][name] = f"{type(error).__name__}: {error}"
                print(f"  {name} failed: {error}", file=sys.stderr, flush=True)
            gc.collect()
            torch.cuda.empty_cache()
            print(f"  {name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
            if args.out:
                args.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return made


def _group(device: Any, works: Callable[[], Iterable[Any]], args: argparse.Namespace, rows: list[Any]) -> None:
    for work in works():
        rows.append(_row(device, work, args))
        print(f"{rows[-1]['name']}: {_line(rows[-1])}", file=sys.stderr, flush=True)


def _row(device: Any, work: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one work; a peer that this machine has not is named with the reason.

    Ours and its peers are timed in turn, ROUNDS times: a card at its power limit gives each the clock that all of them
    together leave, where one after the other each would find what the one before has left.
    """
    timing = measure(device, work.ours, None, work.cost, args.warmup, args.rep)
    calls = {OURS: work.ours, **work.peers}
    methods, times, errors = _in_turn(device, calls, timing.method, args)
    p20, median, p80 = quantiles(times[OURS])
    if methods[OURS] == "launch" and median < HOST_MS and p80 - p20 > UNSTABLE * median:  # it waits for the host
        again, replays, failed = _in_turn(device, calls, "graph", args)
        if again[OURS] == "graph" and quantiles(replays[OURS])[1] < p20:
            timing = replace(timing, launch_median=median)
            methods, times, errors = again, replays, failed
    peers: dict[str, dict[str, Any]] = {name: {"error": why} for name, why in errors.items()}
    for name, taken in times.items():
        p20, median, p80 = quantiles(taken)
        peers[name] = {"ms": median, "p20": p20, "p80": p80, "method": methods[name]}
    ours = peers.pop(OURS)
    sooner = timing.median / ours["ms"] if ours["ms"] else 1.0  # than `measure` found, whose median its rates are of
    row: dict[str, Any] = {
        "name": work.name,
        "group": work.group,
        **ours,
        "launch_ms": timing.launch_median,
        "gbps": timing.gbps and timing.gbps * sooner,
        "tflops": timing.tflops and timing.tflops * sooner,
        "ceiling": timing.ceiling and timing.ceiling * sooner,
        "ceiling_of": timing.ceiling_of,
        "asked": dict(work.asked),
        "peers": peers,
    }
    if work.memory:
        row["peak_bytes"] = {"ours": _peak(work.ours)}
        row["peak_bytes"] |= {name: _peak(call) for name, call in work.peers.items() if name in times}
    return row


def _in_turn(
    device: Any, calls: Mapping[str, Callable[[], Any]], method: str, args: argparse.Namespace
) -> tuple[dict[str, str], dict[str, list[float]], dict[str, str]]:
    """Return how each call was timed, its milliseconds, taken in turn in ROUNDS rounds, and why others were not."""
    methods: dict[str, str] = {}
    times: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    for round_ in range(ROUNDS):
        for name, call in calls.items():
            if name in errors:
                continue
            try:
                if not round_:
                    methods[name], times[name] = _method(device, call, method), []
                graph = methods[name] == "graph"
                times[name] += bench(device, call, args.warmup / ROUNDS, args.rep / ROUNDS, graph=graph)
            except Exception as error:  # a peer is another project's code: whatever it raises is why there is no figure
                if name == OURS:
                    raise
                device.synchronize()
                said = str(error).splitlines()[0] if str(error) else ""
                errors[name] = f"{type(error).__name__}: {said}"[:200]
                times.pop(name, None)
    return methods, times, errors


def _method(device: Any, call: Callable[[], Any], method: str) -> str:
    """Return how a call is timed: by `method`, or by its launches where it cannot be replayed."""
    call()
    device.synchronize()
    if method == "graph":
        try:
            device.capture(lambda: [call() for _ in range(REPLAYED)])
        except RuntimeError:  # it waits for the device, or there is no memory for as many
            device.synchronize()
            return "launch"
    return method


def _peak(call: Callable[[], Any]) -> int:
    """Return the bytes that a call takes beside what was there before it."""
    import torch

    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def overhead() -> list[dict[str, Any]]:
    """Return the host's microseconds a call of operators, and over the bare `kernel[grid]` of each one's own kernel."""
    import torch

    from portability.kernel import blocks_for, cdiv
    from portability.kernels import elementwise, softmax, vector_add
    from portability.kernels.rows import whole_rows

    x, y = torch.randn(2, 4096, device="cuda")
    out = torch.empty_like(x)
    blocks = blocks_for("vector_add", x)
    grid = (cdiv(4096, blocks["BLOCK_SIZE"]),)
    _, planned = elementwise.planner("add")(x, y, blocks_for("elementwise_add", x))
    kernel, tiles, numbers, constants = planned
    rows = torch.randn(8, 512, device="cuda")
    turned, leaf = torch.empty_like(rows), rows.clone().requires_grad_()
    whole = whole_rows(512, blocks_for("softmax", rows))
    programs = (cdiv(8, whole["BLOCK_M"]),)
    timed: list[tuple[str, Callable[[], Any], dict[str, Callable[[], Any]]]] = [
        (
            "vector_add's kernel[grid], bare",
            lambda: vector_add.add_kernel[grid](x, y, out, 4096, **blocks),
            {"vector_add.add": lambda: vector_add.add(x, y), "empty_like alone": lambda: torch.empty_like(x)},
        ),
        (
            "elementwise's kernel[grid], bare",
            lambda: kernel[tiles](x, y, out, *numbers, OPERATION="add", **constants),
            {"elementwise.add": lambda: elementwise.add(x, y)},
        ),
        (
            "softmax's kernel[grid], bare",
            lambda: softmax.softmax_kernel[programs](rows, turned, 8, 512, 512, 1, 512, 1, **whole),
            {"softmax": lambda: softmax.softmax(rows), "softmax, through autograd": lambda: softmax.softmax(leaf)},
        ),
    ]
    operation = getattr(torch.ops, "portability", None)
    if operation is not None and hasattr(operation, "softmax"):
        timed[-1][2]["softmax, through triton_op"] = lambda: operation.softmax(rows)
    made = []
    for name, call, calls in timed:
        bare = _host_time(call)
        made.append({"call": name, "us": bare, "over": 0.0})
        made += [{"call": n, "us": (t := _host_time(c)), "over": t - bare} for n, c in calls.items()]
    return made


def _host_time(call: Callable[[], Any]) -> float:
    """Return the microseconds that the host spends in a call, the least of several series."""
    import torch

    found = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - start) / CALLS * 1e6)
    return min(found)


# ------------------------------------------------------------------------------------------------- rendering


def ratios(row: Mapping[str, Any]) -> dict[str, float]:
    """Return what ours reaches of each peer (its time over ours) and of the ceiling."""
    found = {name: _ratio(row, peer) for name, peer in row["peers"].items() if "ms" in peer}
    return found | ({"ceiling": row["ceiling"]} if row.get("ceiling") else {})


def _ratio(row: Mapping[str, Any], peer: Mapping[str, Any]) -> float:
    """Return a peer's time over ours; over our launches', where ours was replayed and the peer cannot be."""
    launched = row.get("method") == "graph" and peer.get("method") == "launch"
    return float(peer["ms"] / (row["launch_ms"] if launched else row["ms"]))


def short_of(row: Mapping[str, Any]) -> list[str]:
    """Return what was asked of a row and is not reached, in words; a group is asked as a whole (`_mean`)."""
    if row.get("group"):
        return []
    reached = ratios(row)
    return [
        f"{reached[name]:.2f} of {least:g} asked against {name}" if name in reached else f"{name} was not timed"
        for name, least in row["asked"].items()
        if round(reached.get(name, 0.0), 2) < least  # as it is shown
    ]


def _line(row: Mapping[str, Any]) -> str:
    found = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(row).items())
    failed = "; ".join(f"{n}: {p['error']}" for n, p in row["peers"].items() if "error" in p)
    rate = f"{row['tflops']:.0f} TFLOP/s" if row.get("tflops") else f"{row['gbps']:.0f} GB/s" if row["gbps"] else ""
    return f"{row['ms']:.4f} ms {rate} {found} {failed}"


def render(made: Mapping[str, Any]) -> str:
    """Return the figures as Markdown."""
    rows = [_cells(row) for row in made["rows"]]
    heads = ("work", "ms", "spread", "rate", "of the ceiling", "peer's time over ours", "short of what is asked")
    where = f"{made['device']}, torch {made['torch']}, Triton {made['triton']}; copy {made['copy_gbps']:.0f} GB/s."
    parts = [where, "", tabulate(rows, headers=heads, tablefmt="github")]
    for group in dict.fromkeys(r["group"] for r in made["rows"] if r["group"]):
        parts += ["", _mean(group, [r for r in made["rows"] if r["group"] == group])]
    peaks = [r for r in made["rows"] if r.get("peak_bytes")]
    if peaks:
        names = list(dict.fromkeys(n for r in peaks for n in r["peak_bytes"]))
        lines = [(r["name"], *(f"{r['peak_bytes'].get(n, 0) / 1e6:.0f}" for n in names)) for r in peaks]
        parts += ["", tabulate(lines, headers=("memory beside the operands, MB", *names), tablefmt="github")]
    if made["overhead"]:
        lines = [(o["call"], f"{o['us']:.1f}", f"{o['over']:+.1f}") for o in made["overhead"]]
        parts += ["", tabulate(lines, headers=("host's part of a call", "µs", "over bare"), tablefmt="github")]
    return "\n".join(parts) + "\n"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    spread = (row["p80"] - row["p20"]) / row["ms"]
    rate = f"{row['tflops']:.0f} TFLOP/s" if row.get("tflops") else f"{row['gbps']:.0f} GB/s" if row["gbps"] else ""
    peers = ", ".join(f"{n} {_ratio(row, p):.2f}{_how(row, p)}" for n, p in row["peers"].items() if "ms" in p)
    ceiling = f"{row['ceiling']:.2f} of {row['ceiling_of']}" if row.get("ceiling") else ""
    figure = f"{row['ms']:.4f}" if spread <= UNSTABLE else f"unstable, about {row['ms']:.3f}"
    if row["method"] == "graph":
        figure += " (replayed)"
    return row["name"], figure, f"{spread:.0%}", rate, ceiling, peers, "; ".join(short_of(row))


def _how(row: Mapping[str, Any], peer: Mapping[str, Any]) -> str:
    return " (both launched)" if row["method"] != peer.get("method", row["method"]) else ""


def _mean(group: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the geometric mean of a group's ratios to what is asked of it first."""
    peer, least = next(iter(rows[0]["asked"].items()))
    found = [ratios(r)[peer] for r in rows if peer in ratios(r)]
    mean = math.exp(sum(map(math.log, found)) / len(found)) if found else math.nan
    return f"Geometric mean of {len(found)} {group}: {mean:.3f} of {peer}, where {least:g} is asked."


if __name__ == "__main__":
    sys.exit(main())
