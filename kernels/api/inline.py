"""Inline assembly and scalar functions mapped over a block."""

from functools import partial

import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, called

spelled = partial(called, group="inline", relative=0.0)


@triton.jit
def ptx(x):
    return tl.inline_asm_elementwise("add.f32 $0, $1, 0f3F800000;", "=f,f", [x], tl.float32, True, 1)


@triton.jit
def ptx_pack(x):
    """Four bytes at a time, the bits of each reversed in order of significance and back."""
    once = tl.inline_asm_elementwise("brev.b32 $0, $1;", "=r,r", [x], tl.int8, True, 4)
    return tl.inline_asm_elementwise("brev.b32 $0, $1;", "=r,r", [once], tl.int8, True, 4)


@triton.jit
def ptx_two_results(x, y):
    low, high = tl.inline_asm_elementwise(
        "min.s32 $0, $2, $3; max.s32 $1, $2, $3;", "=r,=r,r,r", [x, y], (tl.int32, tl.int32), True, 1
    )
    return high - low


@triton.jit
def gcn(x):
    return tl.inline_asm_elementwise("v_add_f32 $0, 1.0, $1", "=v,v", [x], tl.float32, True, 1)


@triton.jit
def collatz(n):
    """The number of steps to 1, which differs from element to element (3n + 1 problem)."""
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@triton.jit
def map_branches(x):
    return tl.map_elementwise(collatz, x)


@triton.jit
def both(a, b):
    return a + b, a - b


@triton.jit
def map_two_results(x, y):
    total, difference = tl.map_elementwise(both, x, y)
    return total * difference


@triton.jit
def swap(a, b):
    return b, a


@triton.jit
def map_pack(x):
    """Two elements at a time, exchanged and exchanged again."""
    return tl.map_elementwise(swap, tl.map_elementwise(swap, x, pack=2)[0], pack=2)[0]


def steps(x):
    """The steps of `collatz` for each element."""
    counts = []
    for start in x.tolist():
        n, count = start, 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        counts.append(count)
    return x.new_tensor(counts)


CASES = [
    spelled("tl.inline_asm_elementwise", ptx, lambda x: x + 1, dtypes=("float32",), relative=1.0),
    spelled(
        "tl.inline_asm_elementwise", ptx_pack, lambda x: x, name="tl.inline_asm_elementwise.pack", dtypes=("int8",),
    ),
    spelled(
        "tl.inline_asm_elementwise", ptx_two_results, lambda x, y: (x - y).abs(),
        name="tl.inline_asm_elementwise.two_results", arity=2, dtypes=("int32",),
    ),
    spelled(
        "tl.inline_asm_elementwise", gcn, lambda x: x + 1, name="tl.inline_asm_elementwise.gcn", dtypes=("float32",),
        relative=1.0,
    ),
    spelled(
        "tl.map_elementwise", map_branches, steps, inputs=lambda d: (d.integers(BLOCK, low=1, high=30),),
        dtypes=("int32",),
    ),
    spelled(
        "tl.map_elementwise", map_two_results, lambda x, y: x * x - y * y, name="tl.map_elementwise.two_results",
        arity=2, terms=lambda x, y: x * x + y * y, dtypes=("float32", "int32"),
    ),
    spelled("tl.map_elementwise", map_pack, lambda x: x, name="tl.map_elementwise.pack", dtypes=("float32",)),
]  # fmt: skip
