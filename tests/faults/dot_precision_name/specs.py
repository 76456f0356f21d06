"""Precisions that the wrapper never asks for, named by specs alone."""

import triton
import triton.language as tl

FINDS = {"dot-precision-name": ["hip:gfx90a", "hip:gfx1100"]}
PASSES = ["cuda:80"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b, input_precision=PRECISION))  # here: dot-precision-name


SIGNATURE = {"a_ptr": "*fp32", "b_ptr": "*fp32", "out_ptr": "*fp32"}
SPECS = {
    p: {"fn": "product", "sig": SIGNATURE, "const": {"N": 16, "PRECISION": p}} for p in ("ieee", "bf16x6", "tf32x3")
}
