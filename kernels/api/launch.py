"""Options of a launch and of `triton.jit`. None of them changes a result, so that a backend may ignore it."""

from functools import cached_property, partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, empty, magnitude, probe

TILE = 64

plain = partial(probe, group="launch", relative=0.0, dtypes=("float32",), BLOCK=BLOCK)


@triton.jit
def scale_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 2x."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


@triton.jit
def fma_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x·x - 1, which may be fused."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x * x - 1)


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, K: tl.constexpr, TILE: tl.constexpr):
    """out = x·y, with x of TILE × K, a tile of K at a time."""
    row, column = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, K, TILE):
        x, y = tl.load(x_ptr + row * K + k + column), tl.load(y_ptr + (k + row) * TILE + column)
        total = tl.dot(x, y, total)
    tl.store(out_ptr + row * TILE + column, total)


@triton.jit(do_not_specialize=["n"])
def unspecialized_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = 2x, with a size that makes no other binary whatever it is."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


@triton.jit(do_not_specialize_on_alignment=["x_ptr"])
def unaligned_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 2x, whatever the alignment of x."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


@triton.heuristics({"DOUBLE": lambda arguments: arguments["BLOCK"] > 1})
@triton.jit
def heuristics_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, DOUBLE: tl.constexpr):
    """out = 2x, where a constant is computed from the others."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * (2 if DOUBLE else 1))


@triton.jit
def steps_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """out = 2x, STEP elements at a time."""
    for first in range(0, BLOCK, STEP):
        offsets = first + tl.arange(0, STEP)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


class Autotuned:
    """The kernel above with its steps tuned, made at its first launch: Triton 3.2 wants a driver to declare it."""

    @cached_property
    def kernel(self):
        """The autotuner."""
        configs = [triton.Config({"STEP": BLOCK // 2}), triton.Config({"STEP": BLOCK}, num_warps=8)]
        return triton.autotune(configs=configs, key=["n"])(steps_kernel)

    def __getitem__(self, grid):
        return self.kernel[grid]


def twice(x):
    return 2 * x


def option(name, value, kernel=scale_kernel, reference=twice, label="", **more):
    """The probe of one option of a launch."""
    return plain(
        f"launch.{name}", kernel, reference, name=f"launch.{name}{label and '.'}{label}", **{name: value}, **more
    )


def product(name, value, label="", dtypes=("float16",)):
    """The probe of an option that is about matrix products in a loop."""
    return probe(
        f"launch.{name}", product_kernel, lambda x, y: x @ y, name=f"launch.{name}{label and '.'}{label}",
        group="launch",
        inputs=lambda d: (d.normal(TILE, 4 * TILE), d.normal(4 * TILE, TILE)),
        chain=lambda x, y: x.float() @ y.float(), out=empty(TILE, TILE, dtype=torch.float32),
        terms=lambda x, y: magnitude(x) @ magnitude(y), dtypes=dtypes, K=4 * TILE, TILE=TILE, **{name: value},
    )  # fmt: skip


CASES = [
    *(option("num_warps", count, label=str(count)) for count in (1, 2, 8, 16, 32)),
    *(product("num_stages", count, str(count)) for count in (1, 2, 4)),
    option("num_ctas", 2),
    product("num_ctas", 2, "dot"),
    option("maxnreg", 64),
    option("enable_fp_fusion", False, fma_kernel, lambda x: x * x - 1, relative=1.0, absolute=1.0),
    option("waves_per_eu", 2),
    product("matrix_instr_nonkdim", 16, "16"),
    product("matrix_instr_nonkdim", 32, "32"),
    product("kpack", 2),
    product("schedule_hint", "attention"),
    option("allow_flush_denorm", True),
    option("launch_cooperative_grid", True),
    option("launch_pdl", True),
    option("ptx_options", "-O1"),
    option("sanitize_overflow", False),
    option("debug", True),
    option("instrumentation_mode", ""),
    option("enable_reflect_ftz", False),
    option("llvm_fn_attrs", "noinline"),
    option("wgp_cu_mode", "cu"),
    option("min_shared_mem", 1024),
    option("sched4reg", True),
    option("multibuffer", True),
    plain("jit.do_not_specialize", unspecialized_kernel, twice, n=BLOCK),
    plain("jit.do_not_specialize_on_alignment", unaligned_kernel, twice),
    plain("jit.heuristics", heuristics_kernel, twice),
    plain("jit.autotune", Autotuned(), twice, n=BLOCK),
]  # fmt: skip
