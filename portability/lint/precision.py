"""TP3: precision and dtypes of matrix products and float8."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from portability.lint.arguments import keyword
from portability.lint.branches import is_guarded
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source

_LOW = ("float16", "bfloat16")

# Which targets refuse which float8 (casts compiled by Triton 3.9.0 for every target).
_FLOAT8 = {
    "float8e4nv": ("cuda:75", "cuda:80", "cuda:86", "cuda:87"),
    "float8e4b15": ("hip:*",),
    "float8e4b8": ("cuda:*",),
    "float8e5b16": ("cuda:*",),
}


@rule(
    "TP301",
    "tf32-named",
    branches=True,
    link="https://github.com/triton-lang/triton/issues/5637",
    bad="""
import triton, triton.language as tl

@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    c = tl.dot(a, b, input_precision="tf32x3")  # here
    c += tl.dot(a, b, allow_tf32=True)  # here
    c += tl.dot(a, b, input_precision=PRECISION)
    tl.store(c_ptr + at, c)

def product(a, b, c):
    product_kernel[(1,)](a, b, c, N=32, PRECISION="tf32")  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    c = tl.dot(a, b, input_precision="ieee")
    c += tl.dot(a, b, input_precision=PRECISION)
    tl.store(c_ptr + at, c)

def product(a, b, c):
    product_kernel[(1,)](a, b, c, N=32, PRECISION="bf16x3")
""",
)
def tf32_named(source: Source) -> Iterator[Hit]:
    """TF32 is asked for by name.

    `input_precision="tf32"` is refused by every AMD target but gfx942, "tf32x3" by all of them; `allow_tf32=True` is
    taken everywhere and means another precision on each. "ieee", "bf16x3" and "bf16x6" exist on all. Pass the
    precision in from the table of the target.
    """
    for kernel in source.kernels:
        for node in source.flow(kernel).dots:
            allow, precision = keyword(node, "allow_tf32"), keyword(node, "input_precision")
            for value, place in _given(source, kernel, allow):
                if value is True:
                    yield Hit(
                        place,
                        "allow_tf32=True is TF32 on sm_80 and later and another precision elsewhere",
                        ("cuda:*", "hip:*"),
                    )
            for value, place in _given(source, kernel, precision):
                if isinstance(value, str) and value.lower().startswith("tf32"):
                    targets = ("hip:*",) if value.lower() != "tf32" else ("hip:gfx90a", "hip:gfx950", "hip:gfx1*")
                    yield Hit(
                        place, f'input_precision "{value}" does not exist on AMD; "bf16x3" and "ieee" do', targets
                    )


def _given(source: Source, kernel: Kernel, node: ast.expr | None) -> list[tuple[object, ast.expr]]:
    """The literals that an argument may be, through a parameter of the kernel."""
    if isinstance(node, ast.Name) and kernel.parameter(node.id) is not None:
        return list(source.launches.values(kernel, node.id))
    return [(source.constants.literal(node), node)] if node is not None else []


@rule(
    "TP302",
    "default-dot-precision",
    targets=("cuda:*", "hip:*"),
    link="https://github.com/triton-lang/triton/issues/5895",
    bad="""
import triton, triton.language as tl

@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at).to(tl.float32)
    b = tl.load(b_ptr + at).to(tl.float32)
    tl.store(c_ptr + at, tl.dot(a, b))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at).to(tl.float32)
    b = tl.load(b_ptr + at).to(tl.float32)
    tl.store(c_ptr + at, tl.dot(a, b, input_precision="ieee"))
""",
)
def default_dot_precision(source: Source) -> Iterator[Hit]:
    """A product of float32 blocks leaves its precision to the target.

    The default is FMA on sm_75 and RDNA, TF32 on sm_80 and later, XF32 on gfx942, float32 on gfx90a and gfx950, and
    exact in the interpreter: three digits apart. Only operands that are evidently float32 are reported.
    """
    for kernel in source.kernels:
        for node, dot in source.flow(kernel).dots.items():
            named = keyword(node, "input_precision") is not None or keyword(node, "allow_tf32") is not None
            if dot.left.dtype == dot.right.dtype == "float32" and not named and len(node.args) < 4:
                yield Hit(node, "float32 operands and no input_precision: TF32 on some targets, float32 on others")


@rule(
    "TP303",
    "float8-family",
    branches=True,
    targets=("cuda:*", "hip:*"),
    link="https://github.com/triton-lang/triton/issues/6542",
    bad="""
import triton, triton.language as tl

@triton.jit
def quantize_kernel(x_ptr, q_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(q_ptr + offsets, x.to(tl.float8e4nv), mask=offsets < n)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def quantize_kernel(x_ptr, q_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(q_ptr + offsets, x.to(q_ptr.dtype.element_ty), mask=offsets < n)
""",
)
def float8_family(source: Source) -> Iterator[Hit]:
    """A float8 format that some targets do not have.

    `float8e4nv` is refused below sm_89, `float8e4b15` on AMD, `float8e4b8` and `float8e5b16` on NVIDIA. Take the
    format from the tensor (`q_ptr.dtype.element_ty`), so that the caller's choice for the device holds.
    """
    for kernel in source.kernels:
        compared = {n for c in source.nodes_of(kernel) if isinstance(c, ast.Compare) for n in ast.walk(c)}
        for node in source.nodes_of(kernel):
            name = source.names.language(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""
            if name in _FLOAT8 and not (node in compared or _is_asked_for(source, node) or is_guarded(source, node)):
                refused = ", ".join(_FLOAT8[name])
                yield Hit(node, f"{name} is refused on {refused}; take the dtype from the tensor", _FLOAT8[name])


def _is_asked_for(source: Source, node: ast.AST) -> bool:
    """Return whether the place is reached only where the caller chose a float8 format."""
    tests = (ast.unparse(a.test) for a in source.ancestors(node) if isinstance(a, (ast.If, ast.IfExp)))
    return any(re.search(r"fp8|float8|e4m3|e5m2|fnuz", test, re.IGNORECASE) for test in tests)


@rule(
    "TP304",
    "mixed-dot",
    link="https://triton-lang.org/main/python-api/generated/triton.language.dot.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def weighted_kernel(s_ptr, v_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    p = tl.exp(tl.load(s_ptr + at).to(tl.float32))
    v = tl.load(v_ptr + at)
    tl.store(o_ptr + at, tl.dot(p, v, input_precision="ieee"))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def weighted_kernel(s_ptr, v_ptr, o_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    p = tl.exp(tl.load(s_ptr + at).to(tl.float32))
    v = tl.load(v_ptr + at)
    tl.store(o_ptr + at, tl.dot(p.to(v.dtype), v, input_precision="ieee"))
""",
)
def mixed_dot(source: Source) -> Iterator[Hit]:
    """A float32 block is multiplied with one that is still as it was loaded.

    `tl.dot` takes two operands of one dtype: the kernel is refused for float16 and bfloat16 tensors. Cast one
    (`p.to(v.dtype)`).
    """
    for kernel in source.kernels:
        for node, dot in source.flow(kernel).dots.items():
            for wide, other, name in ((dot.left, dot.right, "second"), (dot.right, dot.left, "first")):
                if wide.dtype == "float32" and ((other.raw and not other.dtype) or other.dtype in _LOW):
                    yield Hit(
                        node, f"a float32 operand, and the {name} has the dtype of its tensor: cast one to the other's"
                    )
