"""The interpreter computes what a device computes: narrow formats, casts, reductions, atomics, library functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from portability.interpret import opened
from portability.interpret.values import FLOAT8, largest, narrow, saturated, widen
from portability.model import Target

from . import interpreted as k

TARGET = Target("interpreter", "interpreter")
FLOAT8_TYPES = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}


def run(kernel: Any, *args: Any, grid: tuple[int, ...] = (1,), **constants: Any) -> None:
    with opened(TARGET) as session:
        kernel[grid](*args, **constants)
    assert not session.problems


def values(n: int = 512) -> torch.Tensor:
    """Normal values of many magnitudes, both zeros, and the ties between neighbours."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n, generator=generator) * 2.0 ** torch.randint(-12, 12, (n,), generator=generator)
    x[:4] = torch.tensor([0.0, -0.0, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8])
    return x


@pytest.mark.parametrize("name", FLOAT8_TYPES)
def test_every_float8_code_widens_as_in_torch(name: str) -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    assert np.array_equal(widen(codes.numpy(), name), codes.view(FLOAT8_TYPES[name]).float().numpy(), equal_nan=True)


@pytest.mark.parametrize("name", FLOAT8)
def test_every_float8_value_narrows_to_itself(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    exact = widen(codes, name)
    kept = np.isfinite(exact)
    assert np.array_equal(widen(narrow(exact, name), name)[kept], exact[kept])


@pytest.mark.parametrize("name", FLOAT8_TYPES)
def test_float8_rounds_to_nearest_even_and_saturates(name: str) -> None:
    x = torch.cat([values(), torch.tensor([largest(name), 1e9, -1e9, float("inf")])])
    expected = x.clamp(-largest(name), largest(name)).to(FLOAT8_TYPES[name]).float().numpy()
    assert np.array_equal(widen(narrow(x.numpy(), name), name), expected)
    assert saturated(x.numpy(), name)[-3:].all()


def test_bfloat16_rounds_as_in_torch_and_keeps_nan() -> None:
    x = torch.cat([values(), torch.tensor([3.4e38, float("inf"), float("nan")])])
    quiet = x.numpy().copy()
    quiet[-1] = np.array([0x7F800001], dtype=np.uint32).view(np.float32)[0]  # its payload is in the low half alone
    assert np.array_equal(widen(narrow(quiet, "bf16"), "bf16"), x.bfloat16().float().numpy(), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int32])
def test_addition_is_rounded_once(dtype: torch.dtype) -> None:
    x, y = values().to(dtype), values().flip(0).to(dtype)
    out = torch.empty_like(x)
    run(k.add, x, y, out, len(x), grid=(4,), BLOCK=128)
    assert torch.equal(out, x + y)


def test_bfloat16_operations_are_rounded_each() -> None:
    x, y = values(64).bfloat16(), (values(64).flip(0) + 1).bfloat16()
    out = torch.zeros(4 * 64, dtype=torch.bfloat16)
    run(k.bf16_operations, x, y, out, BLOCK=64)
    assert torch.equal(out[:64], ((x * y).float() - x.float() / y.float()).bfloat16())  # a quotient is float32
    assert torch.equal(out[64:128], torch.where(x < y, -x, torch.maximum(x, y)))
    assert torch.equal(out[128:192], x.float().cumsum(0).bfloat16())
    assert out[192] == x.max()


@pytest.mark.parametrize("dtype", FLOAT8_TYPES.values())
def test_products_of_float8_are_exact(dtype: torch.dtype) -> None:
    a, b = (torch.arange(-8, 8).repeat(16).reshape(16, 16).float() / 4).to(dtype), torch.eye(16).to(dtype)
    out = torch.empty(16, 16)
    run(k.product, a, b, out, M=16, N=16, K=16)
    assert torch.equal(out, a.float())


def test_products_of_bfloat16_accumulate_in_float32() -> None:
    a, b = values(256).reshape(16, 16).bfloat16(), values(256).flip(0).reshape(16, 16).bfloat16()
    out = torch.empty(16, 16)
    run(k.product, a, b, out, M=16, N=16, K=16)
    assert torch.allclose(out, a.float() @ b.float(), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize(("dtype", "below"), [(torch.float16, 1 + 2.0**-10), (torch.bfloat16, 1 + 2.0**-7)])
def test_rounding_toward_zero_does_not_round_up(dtype: torch.dtype, below: float) -> None:
    x = torch.tensor([below + 0.9 * (below - 1), -below - 0.9 * (below - 1)])
    out = torch.empty(2, dtype=dtype)
    run(k.convert, x, out, ROUNDING="rtz", BLOCK=2)
    assert out.tolist() == [below, -below]


def test_a_python_float_is_float32_and_no_constant() -> None:
    x = torch.tensor([1.0, 3.0], dtype=torch.float16)
    out = torch.empty(2)
    run(k.scale, x, out, 0.1, BLOCK=2)
    assert torch.equal(out, x.float() * torch.tensor(0.1))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_high_half_of_an_unsigned_product(dtype: torch.dtype) -> None:
    bits = 32 if dtype is torch.int32 else 64
    pairs = [(-1, -1), (2 ** (bits - 1) - 1, -2), (-7, 5), (1 << (bits // 2), 1 << (bits // 2))]
    x, y = (torch.tensor([p[i] for p in pairs], dtype=dtype) for i in (0, 1))
    out = torch.empty_like(x)
    run(k.high_product, x, y, out, BLOCK=4)
    assert [v % 2**bits for v in out.tolist()] == [(a % 2**bits) * (b % 2**bits) >> bits for a, b in pairs]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_atomics_add_lanes_that_meet(dtype: torch.dtype) -> None:
    index = torch.arange(64, dtype=torch.int32) % 8
    out = torch.zeros(8, dtype=dtype)
    run(k.count, index, out, BLOCK=64)
    assert torch.equal(out.float(), torch.full((8,), 4.0))


def test_a_scalar_zero_given_as_other_is_given() -> None:
    out = torch.empty(1)
    run(k.zero_for_other, torch.tensor([5.0]), out, 0)
    assert out.item() == 0


def test_library_functions_are_computed() -> None:
    x = torch.tensor([1.0, 8.0, 27.0, 64.0])
    out = torch.empty(4)
    run(k.roots, x, out, BLOCK=4)
    assert torch.allclose(out, 2 * x ** (1 / 3) + x.sqrt())


LIBRARY: list[tuple[str, list[Any], list[Any]]] = [
    ("__nv_clz", [np.array([1, -1, 0], dtype=np.int32)], [31, 0, 32]),
    ("__nv_ffsll", [np.array([0, 8, -(2**63)])], [0, 4, 64]),
    ("__nv_brev", [np.array([1], dtype=np.int32)], [-(2**31)]),
    ("__nv_byte_perm", [np.array([v], dtype=np.int32) for v in (0x03020100, 0x07060504, 0x7531)], [0x07050301]),
    ("__nv_mul64hi", [np.array([-3]), np.array([2**62])], [-1]),
    ("__nv_float2int_rn", [np.array([2.5, np.nan, 3e9], dtype=np.float32)], [2, 0, 2**31 - 1]),
    ("__nv_fadd_rd", [np.array([1], dtype=np.float32), np.array([-1e-10], dtype=np.float32)], [1 - 2.0**-24]),
    ("__nv_fdiv_ru", [np.array([1], dtype=np.float32), np.array([3], dtype=np.float32)], [0.3333333432674408]),
    ("__nv_fsqrt_rz", [np.array([2], dtype=np.float32)], [1.41421353816986083984375]),
    ("__nv_roundf", [np.array([0.5, -2.5], dtype=np.float32)], [1, -3]),
    ("__nv_jn", [np.array([2], dtype=np.int32), np.array([3.0])], [0.48609126058589107]),
    ("__nv_ynf", [np.array([2], dtype=np.int32), np.array([3], dtype=np.float32)], [-0.16040039]),
    ("__ocml_cbrt_f64", [np.array([27.0])], [3.0]),
]


@pytest.mark.parametrize(("symbol", "args", "expected"), LIBRARY, ids=[row[0] for row in LIBRARY])
def test_symbols_of_device_libraries(symbol: str, args: list[Any], expected: list[Any]) -> None:
    from portability.interpret.libdevice import compute

    assert np.allclose(compute(symbol, args), expected, rtol=1e-7, atol=0)


def test_no_symbol_of_cuda_is_missing() -> None:
    import inspect
    import re

    from triton.language.extra.cuda import libdevice

    from portability.interpret.bits import INTEGERS
    from portability.interpret.libdevice import FLOATS, named
    from portability.interpret.rounding import arithmetic, conversion

    def known(symbol: str) -> bool:
        name = named(symbol)
        keys: list[Callable[[str], Any]] = [arithmetic, conversion]
        stems = [name, name.removesuffix("f"), name.removesuffix("d"), name.removesuffix("ll")]
        return any(key(name) for key in keys) or any(s in INTEGERS or s in FLOATS for s in stems)

    symbols = set(re.findall(r'"(__nv_\w+)"', inspect.getsource(libdevice)))
    assert len(symbols) > 300
    assert [s for s in sorted(symbols) if not known(s)] == []


@pytest.mark.parametrize("dtype", [torch.uint32, torch.int32, torch.uint8, torch.int8])
def test_a_shift_right_brings_in_zeros_or_the_sign_as_the_type_says(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 17, 127, -1, -128, -17, 64], dtype=torch.int32).to(dtype)
    out = torch.zeros_like(x)
    run(k.shift_right, x, out, BLOCK=8)
    assert np.array_equal(out.numpy(), np.right_shift(x.numpy(), 4))


def test_scans_go_back_to_front_where_they_are_asked_to() -> None:
    a, b, out = torch.rand(16), torch.randn(16), torch.zeros(32)
    run(k.scanned_back, a, b, out, BLOCK=16)
    expected, h = [], 0.0
    for x, y in zip(a.flip(0).tolist(), b.flip(0).tolist(), strict=True):
        h = h * x + y
        expected.append(h)
    assert torch.allclose(out[:16].flip(0), torch.tensor(expected), atol=1e-5)
    assert torch.allclose(out[16:], b.flip(0).cumsum(0).flip(0), atol=1e-5)
