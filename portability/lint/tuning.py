"""TP2, continued: what is tuned, over which lengths, and what tuning leaves behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from portability.lint.arguments import keyword
from portability.lint.launches import LENGTH, Extent, Tuning
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source
from portability.lint.values import Access


@rule(
    "TP204",
    "default-warps",
    targets=("cuda:*", "hip:*"),
    link="https://triton-lang.org/main/python-api/generated/triton.Config.html",
    bad="""
import triton, triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_M": 256, "BLOCK_N": 128}),  # here
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),
]
""",
    good="""
import triton, triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_M": 256, "BLOCK_N": 128}, num_warps=8, num_stages=3),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),
]
""",
)
def default_warps(source: Source) -> Iterator[Hit]:
    """A tuned configuration leaves `num_warps` to the default.

    The default of 4 is 128 threads on CUDA and 256 on gfx9, whatever the tile: a 256×128 tile spills there. Name
    the warps (and stages) of every configuration.
    """
    for config in source.launches.configs:
        given = len(config.args) > 1 or keyword(config, "num_warps") is not None
        tiles = config.args[0] if config.args else keyword(config, "kwargs")
        if given or any(k.arg is None for k in config.keywords) or (isinstance(tiles, ast.Dict) and not tiles.keys):
            continue  # no tiles: a place-holder, so that there is nothing to tune
        if isinstance(tiles, ast.Dict) and any(
            isinstance(k, ast.Constant) and k.value == "num_warps" for k in tiles.keys
        ):
            yield Hit(config, "num_warps among the constants is overridden by the default of 4; give it as num_warps=")
        else:
            yield Hit(config, "configuration without num_warps: the default of 4 is tuned for no tile")


@rule(
    "TP205",
    "raw-length-key",
    link="https://triton-lang.org/main/python-api/generated/triton.autotune.html",
    bad="""
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["n_elements"],  # here
)
@triton.jit
def copy_kernel(x_ptr, y_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
""",
    good="""
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["LENGTH_BUCKET"],
)
@triton.jit
def copy_kernel(x_ptr, y_ptr, n_elements, LENGTH_BUCKET: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def copy(x, y):
    bucket = triton.next_power_of_2(x.numel())
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    copy_kernel[grid](x, y, x.numel(), LENGTH_BUCKET=bucket)
""",
)
def raw_length_key(source: Source) -> Iterator[Hit]:
    """The key of autotuning holds a length that differs from call to call.

    Every new length is tuned again, with every configuration, on every target; the choice then also differs from
    run to run. Key on a bucket: the next power of two.
    """
    for tuning in source.launches.tunings:
        for key in tuning.keys:
            if tuning.several and _is_length(source, tuning, str(key.value)):
                yield Hit(key, f"key {key.value!r} is a length: every new one is tuned again; key on a bucket")


def _is_length(source: Source, tuning: Tuning, name: str) -> bool:
    passed = [v for launch in source.launches.of(tuning.kernel) if (v := launch.arguments.get(name)) is not None]
    extents = [source.launches.extent(v) for v in passed]
    if any(e in (Extent.BLOCKS, Extent.FIXED) for e in extents):
        return False
    return Extent.DATA in extents or LENGTH.fullmatch(name) is not None


@rule(
    "TP207",
    "tuned-accumulation",
    link="https://github.com/triton-lang/triton/issues/4217",
    bad="""
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)], key=["DIM"]
)
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, DIM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))  # here
""",
    good="""
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)],
    key=["DIM"],
    reset_to_zero=["out_ptr"],
)
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, DIM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))
""",
)
def tuned_accumulation(source: Source) -> Iterator[Hit]:
    """A tuned kernel adds to what is in memory, and nothing restores it between configurations.

    Tuning launches the kernel many times on the caller's tensors, so the first result is a multiple of the right
    one, or an update in place is made again and again. Name the tensor in `reset_to_zero` or `restore_value`.
    """
    for tuning in source.launches.tunings:
        if not tuning.several or tuning.hooked:
            continue
        seen: set[str] = set()
        written: set[str] = set()  # before it was read, so that what is read is this launch's own
        for access in source.flow(tuning.kernel).accesses.values():
            base = access.pointer.base
            if not base or base in tuning.restored or base in seen | written or not _accumulates(access):
                written |= {base} if access.name == "store" else set()
                continue
            if tuning.configs or not _under_constant(source, tuning.kernel, access.node):
                seen.add(base)
                how = "adds to" if access.name == "atomic_add" else "updates"
                yield Hit(
                    access.node, f"the kernel {how} {base} and is tuned: name it in reset_to_zero or restore_value"
                )


def _under_constant(source: Source, kernel: Kernel, node: ast.AST) -> bool:
    """Return whether a test of constants is around the place: configurations that are not seen may never reach it."""
    constants = {p.name for p in kernel.parameters if p.constant}
    for ancestor in source.ancestors(node):
        if (
            isinstance(ancestor, ast.If)
            and {n.id for n in ast.walk(ancestor.test) if isinstance(n, ast.Name)} <= constants
        ):
            return True
    return False


def _accumulates(access: Access) -> bool:
    """Return whether a second launch would leave something else: a value that is put back, or replaced, stays."""
    updates = access.name == "store" and access.text in access.value.loads and not access.value.kept
    return access.name == "atomic_add" or updates
