"""TP1: devices that are written into a wrapper."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from portability.lint.branches import in_main, is_guarded
from portability.lint.model import Hit, rule
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
    bad="""
import torch, triton, triton.language as tl

@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)

def ones(n):
    out = torch.empty(n, device="cuda")  # here
    fill_kernel[(triton.cdiv(n, 1024),)](out, n, BLOCK=1024)
    return out
""",
    good="""
import torch, triton, triton.language as tl

@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)

def ones_like(x):
    out = torch.empty_like(x)
    fill_kernel[(triton.cdiv(x.numel(), 1024),)](out, x.numel(), BLOCK=1024)
    return out
""",
)
def hard_coded_device(source: Source) -> Iterator[Hit]:
    """A device is written as "cuda".

    The wrapper then fails on an NPU and under the interpreter, whose tensors are on other devices. Take the device
    from an input (`torch.empty_like(x)`, `device=x.device`).
    """
    for node in source.nodes:
        place = _named_device(source, node)
        if place is not None and not in_main(source, place):
            yield Hit(place, f"device {ast.unparse(place)} is written out; take it from an input: device=x.device")


def _named_device(source: Source, node: ast.AST) -> ast.expr | None:
    """Return the place where `node` names CUDA as a device."""
    if isinstance(node, ast.Call):
        return _called_for(source, node)
    if isinstance(node, ast.keyword):
        values = [node.value] if node.arg in _DEVICE_KEYWORDS else []
    elif isinstance(node, ast.Assign):
        values = [node.value] if any("device" in ast.unparse(t).lower() for t in node.targets) else []
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        values = _defaults(node)
    else:
        values = []
    return next((v for v in values if _is_cuda_name(v)), None)


def _called_for(source: Source, node: ast.Call) -> ast.expr | None:
    """`torch.device("cuda")`, `x.to("cuda")`, `x.cuda()`."""
    path = source.names.resolve(node.func)
    method = node.func.attr if isinstance(node.func, ast.Attribute) and not path else ""
    if method == "cuda" and not node.args:
        return node
    takes = (
        path in ("torch.device", "torch.autocast", "torch.amp.autocast", "torch.set_default_device") or method == "to"
    )
    return node.args[0] if takes and node.args and _is_cuda_name(node.args[0]) else None


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """The defaults of parameters that are devices."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    positional = zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults, strict=True)
    pairs = [*positional, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [default for argument, default in pairs if argument.arg.startswith("device") and default is not None]


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
    bad="""
import torch, triton, triton.language as tl

def scale(x):
    assert x.is_cuda  # here
    if x.device.type != "cuda":  # here
        raise ValueError("a CUDA tensor is needed")
    return x
""",
    good="""
import torch, triton, triton.language as tl

def add(x, y):
    if x.device != y.device:
        raise ValueError(f"x is on {x.device}, y on {y.device}; one device is taken")
    return x
""",
)
def is_cuda(source: Source) -> Iterator[Hit]:
    """A wrapper refuses tensors that are not on a CUDA device.

    `is_cuda` is false for an NPU and under the interpreter, where the kernel could run. Check that the inputs share
    one device, not which kind it is. A branch that does the work in another way is not reported.
    """
    for node in source.nodes:
        if isinstance(node, ast.Assert):
            asked = [*_attributes(source, node.test), *_tests(node.test, ast.Eq)]
        elif isinstance(node, ast.If) and _refuses(source, node):
            asked = [*_attributes(source, node.test), *_tests(node.test, ast.NotEq)]
        else:
            continue
        if asked and not in_main(source, node):
            yield Hit(asked[0], _only(asked[0]))


def _refuses(source: Source, node: ast.If) -> bool:
    """Return whether one arm of a branch raises, or a function ends with the only arm: another device gets nothing."""
    arms = [*node.body, *node.orelse]
    if any(isinstance(s, ast.Raise) for s in arms):
        return True
    function = source.function_of(node)
    return not node.orelse and function is not None and function.body[-1] is node


def _attributes(source: Source, test: ast.expr) -> list[ast.expr]:
    """Uses of `is_cuda` as a tensor's; `tl.target_info.is_cuda` asks for the target, in order to branch."""
    found = [n for n in ast.walk(test) if isinstance(n, ast.Attribute) and n.attr == "is_cuda"]
    return [n for n in found if not source.names.resolve(n).startswith("triton.")]


def _only(test: ast.expr) -> str:
    return f"{ast.unparse(test)} refuses other devices; check that the inputs share one device"


def _tests(test: ast.expr, operator: type[ast.cmpop]) -> Iterator[ast.expr]:
    """Comparisons of a device's type with "cuda"."""
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
    bad="""
import torch, triton, triton.language as tl

def synchronized(launch):
    launch()
    torch.cuda.synchronize()  # here
""",
    good="""
import torch, triton, triton.language as tl

def synchronized(launch):
    launch()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elif torch.accelerator.is_available():
        torch.accelerator.synchronize()
""",
)
def torch_cuda_module(source: Source) -> Iterator[Hit]:
    """`torch.cuda` is called without asking whether there is a CUDA device.

    It raises on a machine without one. `torch.accelerator`, `torch.get_device_module(x.device)` and
    `triton.runtime.driver.active` answer for whichever device there is.
    """
    for node in source.nodes:
        if not isinstance(node, ast.Attribute) or source.names.resolve(node.value) != "torch.cuda":
            continue
        if node.attr in ("is_available", "amp") or node.attr[:1].isupper() or node.attr.startswith("is_"):
            continue  # asks, or names a type
        function = source.function_of(node)
        passed_on = function is not None and function.name == node.attr  # asked by those who know that it is there
        if not (passed_on or is_guarded(source, node) or in_main(source, node)):
            yield Hit(node, f"torch.cuda.{node.attr} raises where there is no CUDA device; ask torch.get_device_module")
