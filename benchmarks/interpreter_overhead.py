"""What the checks of the interpreter cost: the time of one pass over the bundled kernels, against Triton's own.

Triton decides at import whether it interprets, so that each side runs in a process of its own. Prints the ratio for
every kernel and dtype, and exits with 1 where one is more than 3.

    python benchmarks/interpreter_overhead.py
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

LIMIT = 3.0  # times Triton's interpreter
REPETITIONS = 5
CELLS = [  # case, dtype, sample: small and large blocks, many programs and few
    ("vector_add", "float32", "100003"),
    ("vector_add", "bfloat16", "100003"),
    ("softmax", "float32", "7x781"),
    ("softmax", "float16", "7x781"),
    ("layer_norm", "float32", "7x781"),
    ("matmul", "float16", "257x129x65"),
    ("matmul", "bfloat16", "257x129x65"),
    ("flash_attention", "float16", "2x77x3x64"),
    ("cross_entropy", "float32", "7x781"),
]


def measure(checked: bool) -> dict[str, float]:
    """Return the median seconds of one call of each cell's operator."""
    import torch

    from portability.kernel import Draw, discover

    cases = discover().cases
    times = {}
    for name, dtype, sample_name in CELLS:
        case = cases[name]
        sample = case.sample(sample_name)
        inputs = sample.inputs(Draw(getattr(torch, dtype), case.blocks, 0))
        seconds = []
        for _ in range(REPETITIONS + 1):  # the first one rewrites functions on either side
            with interpreting(checked):
                began = time.perf_counter()
                case.operator(*inputs, blocks=case.blocks)
                seconds.append(time.perf_counter() - began)
        times[f"{name} {dtype} {sample.name}"] = statistics.median(seconds[1:])
    return times


@contextlib.contextmanager
def interpreting(checked: bool) -> Iterator[None]:
    """A session of the checked interpreter, or nothing where the process interprets by itself."""
    if not checked:
        yield
        return
    from portability.interpret import opened
    from portability.model import Target

    with opened(Target("interpreter", "interpreter")):
        yield


def main() -> int:
    """Measure both sides and print the ratios."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(checked=sys.argv[1] == "checked")))
        return 0
    sides = {}
    for side, interpret in (("plain", "1"), ("checked", "0")):
        command = [sys.executable, __file__, side]
        done = subprocess.run(
            command, env={**os.environ, "TRITON_INTERPRET": interpret}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        sides[side] = json.loads(done.stdout.splitlines()[-1])
    from tabulate import tabulate

    rows = [(cell, plain * 1e3, sides["checked"][cell] * 1e3) for cell, plain in sides["plain"].items()]
    table = [(cell, plain, checked, checked / plain) for cell, plain, checked in rows]
    print(tabulate(table, headers=["one call", "plain ms", "checked ms", "ratio"], floatfmt=("", ".1f", ".1f", ".2f")))
    return int(any(ratio > LIMIT for *_, ratio in table))


if __name__ == "__main__":
    raise SystemExit(main())
