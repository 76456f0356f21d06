"""TP1, continued: what belongs to one vendor: assembly, modules, libdevice functions, launch options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from portability.lint.arguments import keyword
from portability.lint.branches import is_guarded
from portability.lint.model import Hit, rule
from portability.lint.names import known
from portability.lint.source import Source


@rule(
    "TP104",
    "inline-assembly",
    branches=True,
    link="https://github.com/sgl-project/sglang/issues/34351",
    bad="""
import triton, triton.language as tl

@triton.jit
def reciprocal_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)  # here
    tl.store(y_ptr + offsets, y, mask=mask)
""",
    good="""
import triton, triton.language as tl

@triton.jit
def reciprocal_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, IS_CUDA: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    if IS_CUDA:
        y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    else:
        y = 1.0 / x
    tl.store(y_ptr + offsets, y, mask=mask)
""",
)
def inline_assembly(source: Source) -> Iterator[Hit]:
    """Inline assembly without a branch for each vendor.

    The text is one vendor's. For another one the compiler refuses it, ends the process, or prints an error and
    still returns a binary, which is wrong; the interpreter cannot run it.
    """
    for node in source.nodes:
        if isinstance(node, ast.Call) and source.names.language(node.func) == "inline_asm_elementwise":
            vendor = _assembly(source.constants.literal(node.args[0] if node.args else keyword(node, "asm")))
            targets = {"PTX": ("hip:*", "npu:*", "interpreter"), "GCN": ("cuda:*", "npu:*", "interpreter")}
            yield Hit(
                node,
                f"{vendor or 'one vendor'} assembly for every target; branch on the vendor",
                targets.get(vendor, ()),
            )


def _assembly(text: object) -> str:
    """Return whose assembly a text is: AMD's mnemonics begin with v_, s_, ds_ and the like."""
    if not isinstance(text, str):
        return ""
    return "GCN" if re.search(r"\b(v|s|ds|buffer|global|flat)_\w+", text) else "PTX"


@rule(
    "TP105",
    "vendor-module",
    branches=True,
    link="https://github.com/triton-lang/triton/tree/main/python/triton/language/extra",
    bad="""
import triton, triton.language as tl
from triton.language.extra.cuda import globaltimer  # here

@triton.jit
def clock_kernel(out_ptr):
    tl.store(out_ptr, globaltimer())
    tl.store(out_ptr + 1, tl.extra.cuda.smid())  # here
""",
    good="""
import triton, triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def pow_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, libdevice.pow(x, 3.0), mask=offsets < n)
""",
)
def vendor_module(source: Source) -> Iterator[Hit]:
    """A module of the language that belongs to one vendor.

    `tl.extra.cuda` and `tl.extra.hip` compile for their own targets only. `tl.extra.libdevice` picks the target's
    functions; what only one vendor has belongs in a branch.
    """
    for node in source.nodes:
        path = ""
        if isinstance(node, ast.ImportFrom):
            path = node.module or ""
            if path == "triton.language.extra" and any(a.name in ("cuda", "hip") for a in node.names):
                path += "." + next(a.name for a in node.names if a.name in ("cuda", "hip"))
        elif isinstance(node, ast.Import):
            path = next((a.name for a in node.names if _vendor_of(a.name)), "")
        elif isinstance(node, ast.Attribute) and not isinstance(source.parents.get(node), ast.Attribute):
            path = source.names.resolve(node) if ast.unparse(node).count(".") > 1 else ""
        vendor = _vendor_of(path)
        if vendor and not is_guarded(source, node):
            others = ("hip:*", "npu:*", "interpreter") if vendor == "cuda" else ("cuda:*", "npu:*", "interpreter")
            yield Hit(node, f"{path} is for {vendor} alone; use tl.extra.libdevice or branch on the vendor", others)


def _vendor_of(path: str) -> str:
    match = re.match(r"triton\.language\.extra\.(cuda|hip)\b", path)
    return match[1] if match else ""


@rule(
    "TP106",
    "libdevice-gap",
    branches=True,
    link="https://github.com/triton-lang/triton/issues/10375",
    bad="""
import triton, triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def cbrt_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, libdevice.cbrt(x), mask=offsets < n)  # here
""",
    good="""
import triton, triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def tanh_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, libdevice.tanh(x), mask=offsets < n)
""",
)
def libdevice_gap(source: Source) -> Iterator[Hit]:
    """A libdevice function that one of the vendors does not have.

    Of CUDA's 197 libdevice functions HIP has 58 (Triton 3.9): for the others the compile fails on AMD. Write the
    function with those of `tl`, or branch on the vendor.
    """
    cuda, hip = known().libdevice["cuda"], known().libdevice["hip"]
    for node in source.nodes:
        if not isinstance(node, ast.Call) or is_guarded(source, node):
            continue
        name = source.names.libdevice(node.func)
        if len(source.names.alternatives.get(name, ())) > 1:
            continue  # imported in several ways: one of them is for the other vendor
        if name in cuda - hip:
            yield Hit(node, f"libdevice.{name} does not exist on HIP", ("hip:*",))
        elif name in hip - cuda:
            yield Hit(node, f"libdevice.{name} does not exist on CUDA", ("cuda:*",))


@rule(
    "TP107",
    "vendor-launch-option",
    branches=True,
    link="https://github.com/pytorch/pytorch/issues/140800",
    bad="""
import torch, triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)

def double_(x):
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128, waves_per_eu=2)  # here
""",
    good="""
import torch, triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)

def double_(x):
    options = {"waves_per_eu": 2} if torch.version.hip else {}
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128, **options)
""",
)
def vendor_launch_option(source: Source) -> Iterator[Hit]:
    """A launch option that only one backend knows.

    The launch raises KeyError on the others, while `triton.compile` and the interpreter pass over it in silence.
    """
    options = known().options
    only = dict.fromkeys(options["hip"] - options["cuda"], ("hip", "cuda"))
    only |= dict.fromkeys(options["cuda"] - options["hip"], ("cuda", "hip"))
    for launch in source.launches.all:
        for option in launch.options():
            if option.arg in only:
                backend, other = only[option.arg]
                yield Hit(option, f"launch option {option.arg} is known to {backend} alone", (f"{other}:*",))
    for config in source.launches.configs:
        for name in _config_options(config):
            if name.value in only:
                backend, other = only[str(name.value)]
                yield Hit(name, f"launch option {name.value} is known to {backend} alone", (f"{other}:*",))


def _config_options(config: ast.Call) -> Iterator[ast.Constant]:
    for argument in (*config.args[:1], keyword(config, "kwargs")):
        if isinstance(argument, ast.Dict):
            yield from (k for k in argument.keys if isinstance(k, ast.Constant))
