"""Programs and their grid, and the classes that a kernel's source may name."""

from functools import partial
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, probe

GRID = (2, 3, 4)
LIMIT = tl.constexpr(3)  # a constant of the module, which a kernel may read

placed = partial(
    probe, group="programming_model", relative=0.0, inputs=lambda d: (d.integers(*GRID),), dtypes=("int32",), grid=GRID
)
block = partial(probe, group="programming_model", relative=0.0, BLOCK=BLOCK, dtypes=("float32",))


@triton.jit
def program_id_kernel(x_ptr, out_ptr, AXIS: tl.constexpr):
    """out = x + the program's index along an axis, at its place in a grid of 2 × 3 × 4."""
    place = (tl.program_id(0) * 3 + tl.program_id(1)) * 4 + tl.program_id(2)
    tl.store(out_ptr + place, tl.load(x_ptr + place) + tl.program_id(AXIS))


@triton.jit
def num_programs_kernel(x_ptr, out_ptr, AXIS: tl.constexpr):
    """out = x + the number of programs along an axis."""
    place = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(2) + tl.program_id(2)
    tl.store(out_ptr + place, tl.load(x_ptr + place) + tl.num_programs(AXIS))


@triton.jit
def grid_kernel(x_ptr, out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, STEP elements a program."""
    offsets = tl.program_id(0) * STEP + tl.arange(0, STEP)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def const_kernel(x_ptr: tl.const, out_ptr, BLOCK: tl.constexpr):
    """out = x, which is never written."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def constexpr_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x · (3 + 2), from a constant of the module and one of the kernel."""
    TWO: tl.constexpr = BLOCK // BLOCK + 1
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * (LIMIT + TWO))


@triton.jit
def constexpr_type_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, if a constant's type is that of its value."""
    offsets = tl.arange(0, BLOCK)
    tl.static_assert(tl.constexpr(BLOCK).type == tl.constexpr_type(BLOCK))
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def tensor_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, which is a tensor of a block type."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.static_assert(isinstance(x, tl.tensor))
    tl.store(out_ptr + offsets, x)


@triton.jit
def block_type_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, whose type is that of a block of its dtype and size."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.static_assert(x.type == tl.block_type(tl.float32, [BLOCK]))
    tl.store(out_ptr + offsets, x)


@triton.jit
def slice_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, a column of it: what stands before the comma is a `tl.slice`."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets[:, None], tl.load(x_ptr + offsets)[:, None])


@triton.jit
def tuple_kernel(pointers, BLOCK: tl.constexpr):
    """pointers = (x, out): an argument that is a tuple."""
    offsets = tl.arange(0, BLOCK)
    x_ptr, out_ptr = pointers
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def make_tuple_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x + (x + 1), by way of a tuple."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    pair = tl.tuple([x, x + 1])
    tl.store(out_ptr + offsets, pair[0] + pair[1])


@triton.jit
def named_tuple_kernel(pointers, BLOCK: tl.constexpr):
    """An argument that is a named tuple."""
    offsets = tl.arange(0, BLOCK)
    tl.store(pointers.out_ptr + offsets, tl.load(pointers.x_ptr + offsets))


@triton.jit
def numel_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, in a block that is no larger than the language allows."""
    offsets = tl.arange(0, BLOCK)
    tl.static_assert(BLOCK <= tl.TRITON_MAX_TENSOR_NUMEL)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def target_info_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, on whatever target."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if tl.target_info.is_cuda():
        tl.store(out_ptr + offsets, x)
    else:
        tl.store(out_ptr + offsets, x + 0)


@triton.jit
def two_values(x):
    return x + 1, x * 2


@triton.jit
def call_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = (x + 1) + 2x, from a function that returns two values."""
    offsets = tl.arange(0, BLOCK)
    one_more, twice = two_values(tl.load(x_ptr + offsets))
    tl.store(out_ptr + offsets, one_more + twice)


@triton.jit(noinline=True)
def not_inlined(x):
    return x + 1


@triton.jit
def noinline_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x + (x[0] + 1), in a function that is called."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + not_inlined(tl.load(x_ptr)))


class Pointers(NamedTuple):
    """Both arguments of a kernel."""

    x_ptr: torch.Tensor
    out_ptr: torch.Tensor


def along(axis, count):
    """x + the index along `axis`, or where `count` the size of the grid along it."""

    def reference(x):
        shape = [1, 1, 1]
        shape[axis] = -1
        return x + (GRID[axis] if count else torch.arange(GRID[axis], dtype=x.dtype).reshape(shape))

    return reference


CASES = [
    *(
        placed(
            f"tl.{kernel.__name__.removesuffix('_kernel')}", kernel, along(axis, kernel is num_programs_kernel),
            name=f"tl.{kernel.__name__.removesuffix('_kernel')}.{letter}", AXIS=axis,
        )
        for kernel in (program_id_kernel, num_programs_kernel)
        for axis, letter in enumerate("xyz")
    ),
    block("launch.grid", grid_kernel, torch.clone, name="launch.grid.tuple", grid=(4, 1, 1), STEP=BLOCK // 4),
    block("launch.grid", grid_kernel, torch.clone, name="launch.grid.list", grid=[4], STEP=BLOCK // 4),
    block(
        "launch.grid", grid_kernel, torch.clone, name="launch.grid.function",
        grid=lambda meta: (meta["BLOCK"] // meta["STEP"],), STEP=BLOCK // 4,
    ),
    block("tl.const", const_kernel, torch.clone),
    block("tl.constexpr", constexpr_kernel, lambda x: x * 5, relative=1.0),
    block("tl.constexpr_type", constexpr_type_kernel, torch.clone),
    block("tl.tensor", tensor_kernel, torch.clone),
    block("tl.block_type", block_type_kernel, torch.clone),
    block("tl.slice", slice_kernel, torch.clone),
    block("tl.tuple", make_tuple_kernel, lambda x: 2 * x + 1, relative=1.0, absolute=1.0),
    block("tl.tuple", tuple_kernel, torch.clone, name="tl.tuple.argument", arguments=lambda x, out: [(x, out)]),
    block(
        "tl.tuple", named_tuple_kernel, torch.clone, name="tl.tuple.named", arguments=lambda x, out: [Pointers(x, out)],
    ),
    block("tl.TRITON_MAX_TENSOR_NUMEL", numel_kernel, torch.clone),
    block("tl.target_info", target_info_kernel, torch.clone),
    block("jit.return_tuple", call_kernel, lambda x: 3 * x + 1, relative=1.0, absolute=1.0),
    block("jit.noinline", noinline_kernel, lambda x: x + (x[0] + 1), relative=1.0, absolute=1.0),
]  # fmt: skip
