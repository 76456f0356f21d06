"""What `triton.language.extra` adds for one vendor's hardware: counters, identifiers, dependent launches, float8.

A counter or an identifier has no value to compare with, so a probe asks whether it is one that can be.
"""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, called, empty, probe
from portability.kernels.api.dtypes import decoded, nonnegative

asked = partial(probe, group="extra", relative=0.0, dtypes=("float32",), BLOCK=BLOCK)
spelled = partial(called, group="extra", relative=0.0)
truth = partial(asked, reference=torch.ones_like)


@triton.jit
def cuda_time_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Whether time goes on."""
    offsets = tl.arange(0, BLOCK)
    start = tl.extra.cuda.globaltimer()
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, ((tl.extra.cuda.globaltimer() >= start) & (start > 0)).to(tl.float32) + x * 0)


@triton.jit
def hip_time_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Whether time goes on."""
    offsets = tl.arange(0, BLOCK)
    start = tl.extra.hip.memrealtime()
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, ((tl.extra.hip.memrealtime() >= start) & (start > 0)).to(tl.float32) + x * 0)


@triton.jit
def unit_kernel(x_ptr, out_ptr, VENDOR: tl.constexpr, BLOCK: tl.constexpr):
    """Whether the compute unit has a number."""
    offsets = tl.arange(0, BLOCK)
    unit = getattr(tl.extra, VENDOR).smid()
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, ((unit >= 0) & (unit < 65536)).to(tl.float32) + x * 0)


@triton.jit
def warps_kernel(x_ptr, out_ptr, VENDOR: tl.constexpr, BLOCK: tl.constexpr):
    """out = x · the number of warps, which is 4."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * getattr(tl.extra, VENDOR).num_warps())


@triton.jit
def threads_kernel(x_ptr, out_ptr, VENDOR: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, if 4 warps have 32 or 64 threads each."""
    offsets = tl.arange(0, BLOCK)
    threads: tl.constexpr = getattr(tl.extra, VENDOR).num_threads()
    tl.static_assert(threads == 128 or threads == 256)  # noqa: PLR1714 (a kernel has no `in`)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def dependent_launch_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, once the kernel before it has ended."""
    offsets = tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + offsets)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out_ptr + offsets, x)


@triton.jit
def float8_kernel(x_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """out = the bytes x as float8e4b15, in float16."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets).to(tl.float8e4b15, bitcast=True)
    tl.store(out_ptr + offsets, getattr(tl.extra.cuda, NAME)(x, tl.float16))


@triton.jit
def extra_libdevice(x):
    return tl.extra.libdevice.floor(x)


CASES = [
    truth("tl.extra.cuda.globaltimer", cuda_time_kernel),
    truth("tl.extra.hip.memrealtime", hip_time_kernel),
    *(truth(f"tl.extra.{vendor}.smid", unit_kernel, VENDOR=vendor) for vendor in ("cuda", "hip")),
    *(asked(f"tl.extra.{v}.num_warps", warps_kernel, lambda x: 4 * x, VENDOR=v) for v in ("cuda", "hip")),
    *(asked(f"tl.extra.{v}.num_threads", threads_kernel, torch.clone, VENDOR=v) for v in ("cuda", "hip")),
    asked(("tl.extra.cuda.gdc_wait", "tl.extra.cuda.gdc_launch_dependents"), dependent_launch_kernel, torch.clone),
    asked("tl.extra.cuda.gdc_launch_dependents", dependent_launch_kernel, torch.clone, launch_pdl=True),
    *(
        probe(
            f"tl.extra.cuda.{name}", float8_kernel, decoded, group="extra", relative=0.0, inputs=nonnegative,
            out=empty(BLOCK, dtype=torch.float16), dtypes=("uint8",), NAME=name, BLOCK=BLOCK,
        )
        for name in ("convert_custom_float8_sm70", "convert_custom_float8_sm80")
    ),
    spelled("tl.extra", extra_libdevice, torch.floor, dtypes=("float32",)),
]  # fmt: skip
