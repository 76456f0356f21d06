"""Tensor descriptors: made in the kernel or by the host, with all their methods."""

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import probe, store_block, wide

ROWS, COLUMNS = 16, 64  # of a tensor
INNER = 32  # columns of a descriptor's block, which has ROWS rows
RAGGED = 48  # columns that are no whole number of blocks, and a multiple of 16 bytes in every dtype

DTYPES = ("float32", "float16", "bfloat16", "int32", "int8")


@triton.jit
def method_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """out = x, block by block; what leaves the tensor is zero when loaded and is not stored."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    out = tl.make_tensor_descriptor(out_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    for column in tl.static_range(0, COLUMNS, INNER):
        out.store([0, column], x.load([0, column]))


@triton.jit
def function_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """The same, through the functions of the language."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    out = tl.make_tensor_descriptor(out_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    for column in tl.static_range(0, COLUMNS, INNER):
        tl.store_tensor_descriptor(out, [0, column], tl.load_tensor_descriptor(x, [0, column]))


@triton.jit
def copy_block(x, out, column):
    """Copy a block between two descriptors, which are arguments here."""
    tl.static_assert(isinstance(x, tl.tensor_descriptor))
    out.store([0, column], x.load([0, column]))


@triton.jit
def argument_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """The same, in a function that is given the descriptors."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    out = tl.make_tensor_descriptor(out_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    for column in tl.static_range(0, COLUMNS, INNER):
        copy_block(x, out, column)


@triton.jit
def host_kernel(x, out, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """The same, with descriptors that the host made."""
    for column in tl.static_range(0, COLUMNS, INNER):
        out.store([0, column], x.load([0, column]))


@triton.jit
def padding_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """The last block of x, with NaN beyond its columns."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER], padding_option="nan")
    store_block(out_ptr, x.load([0, COLUMNS // INNER * INNER]))


@triton.jit
def attributes_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """out = the block at the middle of x, in a type and shape that the descriptor tells."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    block = x.load([0, COLUMNS // 2])
    tl.static_assert(block.type == x.block_type)
    store_block(out_ptr, block + tl.full(x.block_shape, 0, x.dtype))


@triton.jit
def atomic_kernel(x_ptr, out_ptr, NAME: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """out = NAME(out, x), block by block."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    out = tl.make_tensor_descriptor(out_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    for column in tl.static_range(0, COLUMNS, INNER):
        getattr(out, NAME)([0, column], x.load([0, column]))


@triton.jit
def gather_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """The first columns of x with its rows in reverse."""
    x = tl.make_tensor_descriptor(x_ptr, shape=[ROWS, COLUMNS], strides=[COLUMNS, 1], block_shape=[1, INNER])
    store_block(out_ptr, x.gather(ROWS - 1 - tl.arange(0, ROWS), 0))


@triton.jit
def scatter_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr):
    """out = the rows of x in reverse."""
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, INNER])
    out = tl.make_tensor_descriptor(out_ptr, shape=[ROWS, COLUMNS], strides=[COLUMNS, 1], block_shape=[1, INNER])
    for column in tl.static_range(0, COLUMNS, INNER):
        out.scatter(x.load([0, column]), ROWS - 1 - tl.arange(0, ROWS), column)


def with_workspace(x, *tensors):
    """Give Triton the memory in which a kernel makes its descriptors; triton-ascend 3.2 asks for none."""
    if hasattr(triton, "set_allocator"):
        triton.set_allocator(lambda size, _alignment, _stream: torch.empty(size, dtype=torch.int8, device=x.device))
    return x, *tensors


def described(*tensors):
    """Descriptors made by the host."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return [TensorDescriptor.from_tensor(t, [ROWS, INNER]) for t in tensors]


def on_device(names, kernel, reference, *, columns=COLUMNS, **more):
    """The probe of a kernel that makes its own descriptors of ROWS × columns tensors."""
    more = {"dtypes": DTYPES, "relative": 0.0, "inputs": lambda d: (d.normal(ROWS, columns),), **more}
    return probe(
        names, kernel, reference, group="descriptors", arguments=with_workspace, ROWS=ROWS, COLUMNS=columns,
        INNER=INNER,
        **more,
    )  # fmt: skip


def starting(value):
    return lambda x: torch.full_like(x, value)


def block_of(columns=INNER):
    return lambda x: torch.empty(ROWS, columns, dtype=x.dtype, device=x.device)


def reduced(name, operation, start, dtypes):
    """The probe of an atomic operation on a tensor that holds `start`."""
    return on_device(
        f"tensor_descriptor.{name}", atomic_kernel,
        lambda x: operation(torch.full_like(wide(x), start), wide(x)).to(x.dtype),
        out=starting(start), dtypes=dtypes, NAME=name,
    )  # fmt: skip


def padded(x):
    beyond = torch.full((ROWS, 2 * INNER - RAGGED), float("nan"), dtype=x.dtype)
    return torch.cat([x[:, INNER:], beyond], 1)


CASES = [
    on_device("tl.tensor_descriptor", argument_kernel, torch.clone, dtypes=("float32",)),
    on_device("tl.make_tensor_descriptor", method_kernel, torch.clone),
    on_device("tensor_descriptor.load", method_kernel, torch.clone, columns=RAGGED, dtypes=("float32", "float16")),
    on_device(
        "tensor_descriptor.store", method_kernel, torch.clone, dtypes=("float64", "int64", "uint8", "float8_e4m3fn"),
    ),
    on_device(
        ("tl.load_tensor_descriptor", "tl.store_tensor_descriptor"), function_kernel, torch.clone,
        dtypes=("float32", "float16"),
    ),
    on_device(
        "tl.store_tensor_descriptor", function_kernel, torch.clone, columns=RAGGED, dtypes=("float32", "float16"),
    ),
    on_device(
        "tl.make_tensor_descriptor", padding_kernel, padded, name="tl.make_tensor_descriptor.padding_nan",
        columns=RAGGED, out=block_of(), dtypes=("float32", "float16"),
    ),
    on_device(
        "tensor_descriptor.block_shape", attributes_kernel, lambda x: x[:, INNER:], out=block_of(), dtypes=("float32",),
    ),
    on_device(
        "tensor_descriptor.gather", gather_kernel, lambda x: x.flip(0)[:, :INNER], out=block_of(),
        dtypes=("float32", "float16"),
    ),
    on_device("tensor_descriptor.scatter", scatter_kernel, lambda x: x.flip(0), dtypes=("float32", "float16")),
    reduced("atomic_add", torch.add, 1, ("float32", "float16", "bfloat16", "int32", "uint64")),
    reduced("atomic_max", torch.maximum, 0, ("float16", "float32", "int32", "int64")),
    reduced("atomic_min", torch.minimum, 0, ("float16", "float32", "int32", "int64")),
    reduced("atomic_and", torch.bitwise_and, 5, ("int32", "int64")),
    reduced("atomic_or", torch.bitwise_or, 5, ("int32", "int64")),
    reduced("atomic_xor", torch.bitwise_xor, 5, ("int32", "int64")),
    probe(
        "tensor_descriptor.host", host_kernel, torch.clone, group="descriptors", relative=0.0,
        inputs=lambda d: (d.normal(ROWS, COLUMNS),), arguments=described, dtypes=DTYPES, COLUMNS=COLUMNS, INNER=INNER,
    ),
]  # fmt: skip
