"""Which names of the language a kernel uses."""

from pathlib import Path

import pytest

from portability.uses import uses

HEAD = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
from helpers import reduce_rows
"""

KERNEL = """
@triton.jit
def scale(x, factor):
    return libdevice.cbrt(x).to(tl.float32) * factor

@triton.jit
def main_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, scale(x, 2.0), mask=offsets < n)

@triton.jit
def other_kernel(x_ptr):
    tl.atomic_add(x_ptr, 1)
"""


def test_names_come_through_helpers() -> None:
    """A helper's functions count for the kernel that calls it, and another kernel's do not."""
    found = uses(HEAD + KERNEL, "main_kernel")
    assert " ".join(found.names) == (
        "libdevice.cbrt tensor.to tl.arange tl.constexpr tl.float32 tl.load tl.program_id tl.store"
    )
    assert found.helpers == ("scale",)


def test_without_a_name_all_kernels_count() -> None:
    """The whole file is taken."""
    assert "tl.atomic_add" in uses(HEAD + KERNEL).names


def test_aliases_are_the_same_names() -> None:
    """The way of importing changes nothing."""
    text = """
from triton import jit, language
from triton.language import load as fetch, math
import triton.language.core as core

@jit
def kernel(x_ptr):
    core.store(x_ptr, math.exp(fetch(x_ptr)) + language.math.rsqrt(fetch(x_ptr)))
"""
    assert uses(text).names == ("tl.exp", "tl.load", "tl.rsqrt", "tl.store")


def test_helpers_of_other_files_are_followed_where_given() -> None:
    """Without its source a helper is named as unresolved; with it, its names count."""
    text = HEAD + "\n@triton.jit\ndef kernel(x_ptr, y_ptr):\n    tl.store(y_ptr, reduce_rows(tl.load(x_ptr)))\n"
    helpers = "import triton, triton.language as tl\n@triton.jit\ndef reduce_rows(x):\n    return tl.sum(x, 1)\n"
    assert uses(text).unresolved == ("helpers.reduce_rows",)
    found = uses(text, modules={"helpers": helpers})
    assert found.unresolved == ()
    assert found.helpers == ("helpers.reduce_rows",)
    assert "tl.sum" in found.names


def test_combine_functions_are_followed() -> None:
    """A function that is handed to a reduction is called by it."""
    text = (
        HEAD
        + """
@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def kernel(x_ptr, y_ptr, B: tl.constexpr):
    tl.store(y_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, B)), 0, larger))
"""
    )
    assert "tl.maximum" in uses(text, "kernel").names


def test_methods_of_descriptors_and_tensors_are_told_apart() -> None:
    """A descriptor's store takes offsets as a list."""
    text = (
        HEAD
        + """
@triton.jit
def kernel(desc, x_ptr, B: tl.constexpr):
    x = desc.load([0, 0])
    desc.store([0, 0], x.trans() + x.T)
    x_ptr.store(x.sum(0))
"""
    )
    names = uses(text).names
    assert {"tensor_descriptor.load", "tensor_descriptor.store"} < set(names)
    assert {"tensor.T", "tensor.trans", "tensor.store", "tensor.sum"} < set(names)


def test_vendor_modules_keep_their_path() -> None:
    """What one vendor has is told from what all have."""
    text = HEAD + "\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, tl.extra.cuda.smid())\n"
    assert "tl.extra.cuda.smid" in uses(text).names


def test_attributes_of_a_name_are_not_names() -> None:
    """`tl.float32.primitive_bitwidth` uses `tl.float32`."""
    text = HEAD + "\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, tl.float32.primitive_bitwidth)\n"
    assert uses(text).names == ("tl.float32", "tl.store")


def test_operators_are_kept_apart() -> None:
    """They are listed, and not among the names."""
    found = uses(HEAD + KERNEL, "main_kernel")
    assert {"tensor.__add__", "tensor.__mul__", "tensor.__lt__"} <= set(found.operators)
    assert not any("__" in name for name in found.names)


def test_an_unknown_kernel_is_refused_with_the_choices() -> None:
    """The message names what is there."""
    with pytest.raises(LookupError, match="no kernel 'missing'; there are scale, main_kernel, other_kernel"):
        uses(HEAD + KERNEL, "missing")


def test_a_bundled_kernel() -> None:
    """Vector addition uses five functions of the language."""
    file = Path(__file__).parents[2] / "kernels/vector_add.py"
    found = uses(file.read_text(), "add_kernel")
    assert {"tl.program_id", "tl.arange", "tl.load", "tl.store"} <= set(found.names)
    assert found.unresolved == ()
