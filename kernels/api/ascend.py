"""What triton-ascend adds to the language. Elsewhere each name is refused as missing, which is what its row says."""

import importlib
from functools import partial
from types import ModuleType

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, ROWS, called, empty, like, normals, probe

spelled = partial(called, group="ascend", relative=0.0, dtypes=("float32",))
moved = partial(probe, group="ascend", relative=0.0, dtypes=("float32",), ROWS=ROWS, BLOCK=BLOCK)

# Where its versions keep them: 3.2.0 in the language itself and in its libdevice, later ones in an extension.
HOMES = (
    "triton.language.extra.cann.extension",
    "triton.language.extra.cann.libdevice",
    "triton.language.extra.ascend.libdevice",
    "triton.language",
)
NAMES = (
    "compile_hint", "extract_slice", "gather_out_to_ub", "gamma", "get_element", "index_put", "index_select_simd",
    "insert_slice", "multibuffer", "parallel", "reciprocal", "relu", "scatter_ub_to_out", "sub_vec_id", "sub_vec_num",
    "sync_block_all", "sync_block_set", "sync_block_wait",
)  # fmt: skip


def collected():
    """A module of those names that the installed Triton has."""
    module = ModuleType("ascend")
    for home in HOMES:
        try:
            found = importlib.import_module(home)
        except ImportError:
            continue  # of another version, or of another vendor
        for name in NAMES:
            if hasattr(found, name) and not hasattr(module, name):
                setattr(module, name, getattr(found, name))
    return module


ascend = collected()


@triton.jit
def gather_out_to_ub_kernel(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[i][j] = x[index[i][j]][j], taken from global memory."""
    offsets = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    index = tl.load(index_ptr + offsets)
    out = ascend.gather_out_to_ub(x_ptr, index, ROWS, 0, (BLOCK, 1), (ROWS, BLOCK), (0, 0))
    tl.store(out_ptr + offsets, out)


@triton.jit
def scatter_ub_to_out_kernel(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[index[i][j]][j] = x[i][j], put into global memory."""
    offsets = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x, index = tl.load(x_ptr + offsets), tl.load(index_ptr + offsets)
    ascend.scatter_ub_to_out(out_ptr, x, index, ROWS, 0, (BLOCK, 1), (ROWS, BLOCK), (0, 0))


@triton.jit
def index_select_simd_kernel(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[i] = x[index[i]], whole rows."""
    row = tl.arange(0, ROWS)
    index = tl.load(index_ptr + row * BLOCK)
    out = ascend.index_select_simd(x_ptr, 0, index, (ROWS, BLOCK), (-1, 0), (-1, BLOCK))
    tl.store(out_ptr + row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], out)


@triton.jit
def index_put_kernel(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[index[i]] = x[i], whole rows."""
    row = tl.arange(0, ROWS)
    x = tl.load(x_ptr + row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    index = tl.load(index_ptr + row * BLOCK)
    ascend.index_put(out_ptr, index, x, 0, (ROWS, BLOCK), (0, 0))


@triton.jit
def parallel_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, the rows shared among the vector units."""
    column = tl.arange(0, BLOCK)
    for row in ascend.parallel(0, ROWS):
        tl.store(out_ptr + row * BLOCK + column, tl.load(x_ptr + row * BLOCK + column))


@triton.jit
def sub_vec_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, a share of the rows to each vector unit."""
    share: tl.constexpr = ROWS // ascend.sub_vec_num()
    row = ascend.sub_vec_id() * share + tl.arange(0, share)
    offsets = row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def sync_block_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, with the matrix unit waiting for the vector unit in between."""
    offsets = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + offsets)
    ascend.sync_block_set("vector", "cube", 3)
    ascend.sync_block_wait("vector", "cube", 3)
    tl.store(out_ptr + offsets, x)


@triton.jit
def sync_block_all_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, with a barrier of all vector units in between."""
    offsets = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + offsets)
    ascend.sync_block_all("all_vector", 8)
    tl.store(out_ptr + offsets, x)


@triton.jit
def extract_slice(x):
    return ascend.extract_slice(x, (16,), (32,), (1,))


@triton.jit
def insert_slice(x, y):
    return ascend.insert_slice(x, ascend.extract_slice(y, (0,), (32,), (1,)), (16,), (32,), (1,))


@triton.jit
def get_element(x):
    return x * 0 + ascend.get_element(x, (3,))


@triton.jit
def compile_hint(x):
    ascend.compile_hint(x, "hint_a")
    return x


@triton.jit
def multibuffer(x):
    ascend.multibuffer(x, 2)
    return x


@triton.jit
def reciprocal(x):
    return ascend.reciprocal(x + 8)


@triton.jit
def relu(x):
    return ascend.relu(x)


@triton.jit
def gamma(x):
    return ascend.gamma(x)


@triton.jit
def cast_saturating(x):
    return tl.cast(x * 100, tl.int8, overflow_mode="saturate")


def permuted(draw):
    """Rows, and an order of the rows for each column; the first column's order serves where one is enough."""
    order = torch.tensor([2, 0, 3, 1], dtype=torch.int32)[:, None].expand(ROWS, BLOCK).contiguous()
    return draw.normal(ROWS, BLOCK), order


def inserted(x, y):
    return torch.cat([x[:16], y[:32], x[48:]])


GATHERED = {"inputs": permuted, "out": like}

CASES = [
    moved("ascend.gather_out_to_ub", gather_out_to_ub_kernel, lambda x, index: x.gather(0, index.long()), **GATHERED),
    moved(
        "ascend.scatter_ub_to_out", scatter_ub_to_out_kernel,
        lambda x, index: torch.empty_like(x).scatter(0, index.long(), x), **GATHERED,
    ),
    moved("ascend.index_select_simd", index_select_simd_kernel, lambda x, index: x[index[:, 0].long()], **GATHERED),
    moved(
        "ascend.index_put", index_put_kernel, lambda x, index: torch.empty_like(x).index_copy(0, index[:, 0].long(), x),
        **GATHERED,
    ),
    moved("ascend.parallel", parallel_kernel, torch.clone, inputs=normals(1, ROWS)),
    moved(("ascend.sub_vec_id", "ascend.sub_vec_num"), sub_vec_kernel, torch.clone, inputs=normals(1, ROWS)),
    moved(("ascend.sync_block_set", "ascend.sync_block_wait"), sync_block_kernel, torch.clone, inputs=normals(1, ROWS)),
    moved("ascend.sync_block_all", sync_block_all_kernel, torch.clone, inputs=normals(1, ROWS)),
    spelled("ascend.extract_slice", extract_slice, lambda x: x[16:48], out=empty(32)),
    spelled("ascend.insert_slice", insert_slice, inserted, arity=2),
    spelled("ascend.get_element", get_element, lambda x: x[3].expand(BLOCK)),
    spelled("ascend.compile_hint", compile_hint, torch.clone),
    spelled("ascend.multibuffer", multibuffer, torch.clone),
    spelled("ascend.reciprocal", reciprocal, lambda x: 1 / (x + 8), relative=1.0),
    spelled("ascend.relu", relu, torch.relu),
    spelled(
        "ascend.gamma", gamma, lambda x: torch.exp(torch.lgamma(x)),
        inputs=lambda d: (d.uniform(BLOCK, low=0.5, high=4.0),), relative=16.0,
    ),
    spelled(
        "ascend.cast_overflow_mode", cast_saturating, lambda x: (x * 100).trunc().clamp(-128, 127).to(torch.int8),
        out=empty(BLOCK, dtype=torch.int8), dtypes=("float32",),
    ),
]  # fmt: skip
