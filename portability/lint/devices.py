"""TP1: devices and vendors that are written into a wrapper or a kernel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from portability.lint.calls import keyword
from portability.lint.model import Hit, rule
from portability.lint.names import known
from portability.lint.source import Source

_CUDA = re.compile(r"cuda(:\d+)?")
_DEVICE_KEYWORDS = ("device", "device_type", "device_types")
_ELSEWHERE = ("interpreter", "npu:*")  # ROCm's torch keeps CUDA's name


@rule(
    "TP101",
    "hard-coded-device",
    targets=_ELSEWHERE,
    branches=True,
    link="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    bad='''
import torch, triton, triton.language as tl

@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)

def ones(n):
    out = torch.empty(n, device="cuda")  # here
    fill_kernel[(triton.cdiv(n, 1024),)](out, n, BLOCK=1024)
    return out
''',
    good='''
import torch, triton, triton.language as tl

@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)

def ones_like(x):
    out = torch.empty_like(x)
    fill_kernel[(triton.cdiv(x.numel(), 1024),)](out, x.numel(), BLOCK=1024)
    return out
''',
)
def hard_coded_device(source: Source) -> Iterator[Hit]:
    """A device is written as "cuda".

    The wrapper then fails on an NPU and under the interpreter, whose tensors are on other devices. Take the device
    from an input (`torch.empty_like(x)`, `device=x.device`).
    """
    for node in source.nodes:
        place = _named_device(source, node)
        if place is not None and not source.in_main(place):
            yield Hit(place, f"device {ast.unparse(place)} is written out; take it from an input: device=x.device")


def _named_device(source: Source, node: ast.AST) -> ast.expr | None:
    """Return the place where `node` names CUDA as a device."""
    if isinstance(node, ast.keyword) and node.arg in _DEVICE_KEYWORDS and _is_cuda_name(node.value):
        return node.value
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        defaults = [*zip(arguments, node.args.defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        return next((d for a, d in defaults if a.arg.startswith("device") and d is not None and _is_cuda_name(d)), None)
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return None
    path = source.names.resolve(node.func)
    first = node.args[0] if node.args else None
    if path == "torch.device":
        return first if first is not None and _is_cuda_name(first) else None
    if isinstance(node.func, ast.Attribute) and not path:
        if node.func.attr == "to" and first is not None and _is_cuda_name(first):
            return first
        if node.func.attr == "cuda" and isinstance(node.func.value, (ast.Name, ast.Call, ast.Attribute)):
            return node
    return None


def _is_cuda_name(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0] if isinstance(node.values[0], ast.Constant) else node
        return isinstance(node, ast.Constant) and str(node.value).startswith("cuda:")
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _CUDA.fullmatch(node.value) is not None


@rule(
    "TP102",
    "is-cuda",
    targets=_ELSEWHERE,
    link="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_cuda.html",
    bad='''
import torch, triton, triton.language as tl

def scale(x):
    assert x.is_cuda  # here
    if x.device.type != "cuda":  # here
        raise ValueError("a CUDA tensor is needed")
    return x
''',
    good='''
import torch, triton, triton.language as tl

def add(x, y):
    if x.device != y.device:
        raise ValueError(f"x is on {x.device}, y on {y.device}; one device is taken")
    return x
''',
)
def is_cuda(source: Source) -> Iterator[Hit]:
    """A wrapper refuses, or leaves aside, tensors that are not on a CUDA device.

    `is_cuda` is false for an NPU and under the interpreter, where the kernel could run. Check that the inputs share
    one device, not which kind it is.
    """
    lines: set[int] = set()
    for node in source.nodes:
        if source.in_main(node):
            continue
        if isinstance(node, ast.Attribute) and node.attr == "is_cuda" and node.lineno not in lines:
            lines.add(node.lineno)
            yield Hit(node, f"{ast.unparse(node)} is true on CUDA alone; check that the inputs share one device")
        elif isinstance(node, ast.Assert):
            yield from (Hit(t, _only(t)) for t in _cuda_tests(node.test, ast.Eq))
        elif isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
            yield from (Hit(t, _only(t)) for t in _cuda_tests(node.test, ast.NotEq))


def _only(test: ast.expr) -> str:
    return f"{ast.unparse(test)} refuses other devices; check that the inputs share one device"


def _cuda_tests(test: ast.expr, operator: type[ast.cmpop]) -> Iterator[ast.expr]:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], operator):
            left, right = ast.unparse(node.left), node.comparators[0]
            if left.endswith((".device.type", ".device")) and isinstance(right, ast.Constant) and right.value == "cuda":
                yield node


@rule(
    "TP103",
    "torch-cuda-module",
    targets=_ELSEWHERE,
    branches=True,
    link="https://docs.pytorch.org/docs/stable/accelerator.html",
    bad='''
import torch, triton, triton.language as tl

def synchronized(launch):
    launch()
    torch.cuda.synchronize()  # here
''',
    good='''
import torch, triton, triton.language as tl

def synchronized(launch):
    launch()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elif torch.accelerator.is_available():
        torch.accelerator.synchronize()
''',
)
def torch_cuda_module(source: Source) -> Iterator[Hit]:
    """`torch.cuda` is called without asking whether there is a CUDA device.

    It raises on a machine without one. `torch.accelerator`, `torch.get_device_module(x.device)` and
    `triton.runtime.driver.active` answer for whichever device there is.
    """
    for node in source.nodes:
        if not isinstance(node, ast.Attribute) or not source.names.resolve(node.value) == "torch.cuda":
            continue
        if node.attr in ("is_available", "amp") or node.attr[:1].isupper() or node.attr.startswith("is_"):
            continue  # asks, or names a type
        if not source.is_guarded(node) and not source.in_main(node):
            yield Hit(node, f"torch.cuda.{node.attr} raises where there is no CUDA device; ask torch.get_device_module")


@rule(
    "TP104",
    "inline-assembly",
    branches=True,
    link="https://github.com/sgl-project/sglang/issues/34351",
    bad='''
import triton, triton.language as tl

@triton.jit
def reciprocal_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)  # here
    tl.store(y_ptr + offsets, y, mask=mask)
''',
    good='''
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
''',
)
def inline_assembly(source: Source) -> Iterator[Hit]:
    """Inline assembly without a branch for each vendor.

    The text is one vendor's. For another one the compiler refuses it, ends the process, or prints an error and
    still returns a binary, which is wrong; the interpreter cannot run it.
    """
    for node in source.nodes:
        if isinstance(node, ast.Call) and source.names.language(node.func) == "inline_asm_elementwise":
            vendor = _assembly(source.literal(node.args[0] if node.args else keyword(node, "asm")))
            targets = {"PTX": ("hip:*", "npu:*", "interpreter"), "GCN": ("cuda:*", "npu:*", "interpreter")}
            yield Hit(node, f"{vendor or 'one vendor'} assembly for every target; branch on the vendor", targets.get(vendor, ()))


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
    bad='''
import triton, triton.language as tl
from triton.language.extra.cuda import globaltimer  # here

@triton.jit
def clock_kernel(out_ptr):
    tl.store(out_ptr, globaltimer())
    tl.store(out_ptr + 1, tl.extra.cuda.smid())  # here
''',
    good='''
import triton, triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def pow_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, libdevice.pow(x, 3.0), mask=offsets < n)
''',
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
        if vendor and not source.is_guarded(node):
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
    bad='''
import triton, triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def cbrt_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, libdevice.cbrt(x), mask=offsets < n)  # here
''',
    good='''
import triton, triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def tanh_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, libdevice.tanh(x), mask=offsets < n)
''',
)
def libdevice_gap(source: Source) -> Iterator[Hit]:
    """A libdevice function that one of the vendors does not have.

    Of CUDA's 197 libdevice functions HIP has 58 (Triton 3.9): for the others the compile fails on AMD. Write the
    function with those of `tl`, or branch on the vendor.
    """
    cuda, hip = known().libdevice["cuda"], known().libdevice["hip"]
    for node in source.nodes:
        if not isinstance(node, ast.Call) or source.is_guarded(node):
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
    bad='''
import torch, triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)

def double_(x):
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128, waves_per_eu=2)  # here
''',
    good='''
import torch, triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)

def double_(x):
    options = {"waves_per_eu": 2} if torch.version.hip else {}
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128, **options)
''',
)
def vendor_launch_option(source: Source) -> Iterator[Hit]:
    """A launch option that only one backend knows.

    The launch raises KeyError on the others, while `triton.compile` and the interpreter pass over it in silence.
    """
    options = known().options
    only = {name: ("hip", "cuda") for name in options["hip"] - options["cuda"]}
    only |= {name: ("cuda", "hip") for name in options["cuda"] - options["hip"]}
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
