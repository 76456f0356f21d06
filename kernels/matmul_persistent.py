"""Matrix product by as many programs as there are compute units, which fetch tiles by tensor descriptors.

A descriptor names a whole matrix. Hardware for it (NVIDIA from sm_90 on, AMD from gfx1250 on) copies a tile at a time,
fills what lies outside with 0 and drops what is stored there; elsewhere the compiler makes masked pointers of it.
Whether a target takes this kernel is an entry of its block table, PERSISTENT; how it is scheduled are two more:

    SPECIALIZE  1: some warps fetch, others multiply (on sm_90 with num_warps = 4, to which Triton adds as many twice)
    SUBTILES    2: a tile is stored by halves, which takes half of the shared memory and leaves room for a stage more
"""

import functools

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, cdiv
from portability.kernels.operations import activate, grouped_tile


@triton.jit
def descriptor(ptr, rows, columns, stride, TRANSPOSED: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Describe a rows × columns matrix, of which the columns, or the rows if TRANSPOSED, lie next to each other."""
    if TRANSPOSED:
        matrix = tl.make_tensor_descriptor(ptr, [columns, rows], [stride, 1], [BLOCK_C, BLOCK_R])
    else:
        matrix = tl.make_tensor_descriptor(ptr, [rows, columns], [stride, 1], [BLOCK_R, BLOCK_C])
    return matrix  # one return: Triton 3.6 compiles all of them, also behind a constant condition


@triton.jit
def load_tile(matrix, row, column, TRANSPOSED: tl.constexpr):
    """Load the tile that begins at `row` and `column`."""
    return tl.trans(matrix.load([column, row])) if TRANSPOSED else matrix.load([row, column])


@triton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
    ACTIVATION: tl.constexpr, PRECISION: tl.constexpr, ACCUMULATOR: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPECIALIZE: tl.constexpr, SUBTILES: tl.constexpr,
):  # fmt: skip
    """Each program computes every num_programs-th tile of c, over K in steps of BLOCK_K.

    Flattened, the two loops are one, and the next tile is being fetched while this one is stored; specialised warps
    that fetch run ahead by themselves.
    """
    a_matrix = descriptor(a_ptr, M, K, stride_a, A_TRANSPOSED, BLOCK_M, BLOCK_K)
    b_matrix = descriptor(b_ptr, K, N, stride_b, B_TRANSPOSED, BLOCK_K, BLOCK_N)
    c_matrix = descriptor(c_ptr, M, N, stride_c, False, BLOCK_M, BLOCK_N // SUBTILES)
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=not SPECIALIZE, warp_specialize=SPECIALIZE == 1
    ):
        tile_m, tile_n = grouped_tile(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), ACCUMULATOR)
        for k in range(0, K, BLOCK_K):
            a = load_tile(a_matrix, row, k, A_TRANSPOSED)
            b = load_tile(b_matrix, k, column, B_TRANSPOSED)
            accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        if bias_ptr is not None:
            columns = column + tl.arange(0, BLOCK_N)[None, :]
            accumulator += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(ACCUMULATOR)
        c = activate(accumulator, ACTIVATION).to(c_ptr.dtype.element_ty)
        if SUBTILES == 1:
            c_matrix.store([row, column], c)
        else:
            left, right = tl.split(tl.permute(tl.reshape(c, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
            c_matrix.store([row, column], left)
            c_matrix.store([row, column + BLOCK_N // 2], right)


CHOICES = ("PERSISTENT", "PROGRAMS", "ENOUGH", "SPLIT")  # entries that choose a kernel and its grid
SCHEDULE = ("SPECIALIZE", "SUBTILES")  # and those that only this kernel has


@functools.lru_cache
def kernel_blocks(blocks, without=(*CHOICES, *SCHEDULE)):
    """Return the blocks that are constants and options of a kernel: without those that choose it."""
    return Blocks({name: size for name, size in blocks.items() if name not in without})


def takes(matrix):
    """Return whether a descriptor takes the matrix: one dimension dense, the other and the start at 16 bytes."""
    dense, stride = sorted(matrix.stride())
    return dense == 1 and matrix.numel() > 0 and not (stride * matrix.element_size() % 16 or matrix.data_ptr() % 16)


def launch_matmul_persistent(a, b, bias, c, blocks, given):
    """Write activation(a @ b + bias) into `c`, whose rows are dense; `given` are the kernel's other constants."""
    (M, K), N = a.shape, b.shape[1]
    tiles = cdiv(M, blocks["BLOCK_M"]) * cdiv(N, blocks["BLOCK_N"])
    triton.set_allocator(_scratch)
    matmul_persistent_kernel[(min(tiles, blocks["PROGRAMS"]),)](
        a, b, bias, c, M, N, K, max(a.stride()), max(b.stride()), c.stride(0),
        A_TRANSPOSED=a.stride(1) != 1, B_TRANSPOSED=b.stride(1) != 1, **given, **kernel_blocks(blocks, CHOICES),
    )  # fmt: skip


def _scratch(size, alignment, stream):
    """Memory for the descriptors that a kernel makes, on the current device."""
    return torch.empty(size, dtype=torch.int8, device=triton.runtime.driver.active.get_active_torch_device())
