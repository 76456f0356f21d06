"""Printing and asserting, when compiling and when running."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, probe

silent = partial(probe, group="debug", relative=0.0, reference=torch.clone, dtypes=("float32",), BLOCK=BLOCK)


@triton.jit
def static_print_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.static_print("block of", BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def static_assert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.static_assert(BLOCK > 0, "a block has elements")
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def device_print_kernel(x_ptr, out_ptr, HEX: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.device_print("x", x, hex=HEX)
    tl.store(out_ptr + offsets, x)


@triton.jit
def print_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Python's own print."""
    offsets = tl.arange(0, BLOCK)
    print("program", tl.program_id(0))
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def device_assert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.device_assert(x * x >= 0, "no value is NaN")
    tl.store(out_ptr + offsets, x)


@triton.jit
def masked_assert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.device_assert(offsets < 1, "only the first is looked at", mask=offsets < 1)
    tl.store(out_ptr + offsets, x)


@triton.jit
def assert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Python's own assert."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    assert x * x >= 0, "no value is NaN"
    tl.store(out_ptr + offsets, x)


CASES = [
    silent("tl.static_print", static_print_kernel),
    silent("tl.static_assert", static_assert_kernel),
    silent("tl.device_print", device_print_kernel, HEX=False),
    silent("tl.device_print", device_print_kernel, name="tl.device_print.hex", HEX=True),
    silent("print", print_kernel),
    silent("tl.device_assert", device_assert_kernel, debug=True),
    silent("tl.device_assert", device_assert_kernel, name="tl.device_assert.off"),
    silent("tl.device_assert", masked_assert_kernel, name="tl.device_assert.mask", debug=True),
    silent("assert", assert_kernel, debug=True),
]  # fmt: skip
