"""The functions of libdevice whose result is exact: rounded in a named direction, converted, of bits, of integers."""

import torch

from portability.kernels.api import _rounding
from portability.kernels.api._libdevice import DOUBLE, FLOATS, SINGLE, correct, function, halves
from portability.kernels.api._probe import BLOCK, between, empty, normals, wide

MODES = ("rn", "rz", "rd", "ru")


def arithmetic():
    """Sums, products, quotients, roots and fused products in each direction, and conversions that round."""
    rational, root = _rounding.value, _rounding.root
    for mode in MODES:
        dtypes = FLOATS if mode == "rn" else SINGLE
        yield correct(f"add_{mode}", lambda x, y: rational(x + y), mode, count=2, low=-4.0, dtypes=dtypes)
        yield correct(f"sub_{mode}", lambda x, y: rational(x - y), mode, count=2, low=-4.0, dtypes=dtypes)
        yield correct(f"mul_{mode}", lambda x, y: rational(x * y), mode, count=2, low=-4.0, dtypes=dtypes)
        yield correct(f"div_{mode}", lambda x, y: rational(x / y), mode, count=2, dtypes=dtypes)
        yield correct(f"rcp_{mode}", lambda x: rational(1 / x), mode, dtypes=dtypes)
        yield correct(f"sqrt_{mode}", root, mode, dtypes=dtypes)
        yield correct(f"fma_{mode}", lambda x, y, z: rational(x * y + z), mode, count=3, low=-4.0, dtypes=dtypes)
        yield correct(f"double2float_{mode}", rational, mode, low=-4.0, dtypes=DOUBLE, out_dtype=torch.float32)
        for name, dtype, low, high in (
            ("int2float", "int32", -(2**31), 2**31),
            ("uint2float", "uint32", 0, 2**32),
            ("ll2float", "int64", -(2**62), 2**62),
            ("ull2float", "uint64", 0, 2**63 - 1),
        ):
            yield correct(
                f"{name}_{mode}", rational, mode, low=low, high=high, dtypes=(dtype,), out_dtype=torch.float32
            )  # fmt: skip
        for name, dtype, low in (("ll2double", "int64", -(2**62)), ("ull2double", "uint64", 0)):
            yield correct(
                f"{name}_{mode}", rational, mode, low=low, high=2**62, dtypes=(dtype,), out_dtype=torch.float64
            )  # fmt: skip
    yield correct("rsqrt_rn", _rounding.reciprocal_root, "rn", dtypes=SINGLE)


ROUND = {"rn": torch.round, "rz": torch.trunc, "rd": torch.floor, "ru": torch.ceil}


def conversions():
    """From a float to an integer in each direction, and from an integer that a double holds."""
    for mode, towards in ROUND.items():
        for source, dtypes in (("float", SINGLE), ("double", DOUBLE)):
            for target, low, dtype in (
                ("int", -1000.0, torch.int32), ("uint", 0.0, torch.int32), ("ll", -1000.0, torch.int64),
                ("ull", 0.0, torch.int64),
            ):  # fmt: skip
                yield function(
                    f"{source}2{target}_{mode}", lambda x, f=towards, d=dtype: f(x).to(d), halves(low), dtypes=dtypes,
                    out=empty(BLOCK, dtype=dtype),
                )  # fmt: skip
    for name, dtype, low in (("int2double_rn", "int32", -(2**31)), ("uint2double_rn", "uint32", 0)):
        yield function(
            name, lambda x: x.to(torch.float64), between(low, 2**31), dtypes=(dtype,),
            out=empty(BLOCK, dtype=torch.float64),
        )  # fmt: skip


def reinterpreted(name, source, target):
    """The probe of the bits of a `source` as a `target`."""
    source_dtype, dtype = getattr(torch, source), getattr(torch, target)
    exact = torch.float64 if dtype.is_floating_point else dtype
    bits = {"int32": (2**29, 2**30), "uint32": (2**29, 2**30), "int64": (2**61, 2**62)}.get(source)
    inputs = between(*bits) if bits else normals(1)
    return function(
        name, lambda x: x.to(source_dtype).view(dtype).to(exact), inputs, dtypes=(source,),
        out=empty(BLOCK, dtype=dtype),
    )  # fmt: skip


def bits_of_doubles():
    """A double from its halves, and its halves."""
    yield reinterpreted("int_as_float", "int32", "float32")
    yield reinterpreted("uint_as_float", "uint32", "float32")
    yield reinterpreted("longlong_as_double", "int64", "float64")
    yield reinterpreted("float_as_int", "float32", "int32")
    yield reinterpreted("float_as_uint", "float32", "int32")
    yield reinterpreted("double_as_longlong", "float64", "int64")
    for name, half in (("double2loint", 0), ("double2hiint", 1)):
        yield function(
            name, lambda x, h=half: x.view(torch.int32)[h::2], normals(1), dtypes=DOUBLE,
            out=empty(BLOCK, dtype=torch.int32),
        )  # fmt: skip
    yield function(
        "hiloint2double", lambda high, low: torch.stack([low, high], 1).view(torch.float64).flatten(),
        between(2**29, 2**30, 2), count=2, dtypes=("int32",), out=empty(BLOCK, dtype=torch.float64),
    )  # fmt: skip


def by_element(operation):
    """`operation` on Python's integers, each taken modulo the range of the dtype."""

    def reference(*tensors):
        bits = 8 * tensors[0].dtype.itemsize
        results = [operation(*column, bits) % 2**bits for column in zip(*(t.tolist() for t in tensors), strict=True)]
        signed = tensors[0].dtype.is_signed
        results = [r - 2**bits if signed and r >= 2 ** (bits - 1) else r for r in results]
        return torch.tensor(results, dtype=tensors[0].dtype)

    return reference


def counted(operation):
    """`operation` on the bits of a number as a string, which counts something: an int32."""

    def reference(x):
        bits = 8 * x.dtype.itemsize
        return torch.tensor([operation(format(n % 2**bits, f"0{bits}b")) for n in x.tolist()], dtype=torch.int32)

    return reference


def all_integers(count):
    """Blocks over the whole range of the dtype."""

    def draw(d):
        info = torch.iinfo(d.dtype)
        return tuple(d.integers(BLOCK, low=info.min, high=min(info.max, 2**63 - 1)) for _ in range(count))

    return draw


def byte_perm(x, y, selector, _bits):
    """Four of the eight bytes of y and x, each named by three bits of the selector."""
    source = ((y % 2**32) << 32) | (x % 2**32)
    return sum((source >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))


def low_24(x, signed):
    return ((x % 2**24) ^ 2**23) - 2**23 if signed else x % 2**24


WORDS = ("int32", "uint32")
INT32 = empty(BLOCK, dtype=torch.int32)
COUNTS = {
    "clz": lambda bits: len(bits) - len(bits.lstrip("0")),
    "popc": lambda bits: bits.count("1"),
    "ffs": lambda bits: len(bits) - bits.rfind("1") if "1" in bits else 0,
}


def integers():
    """Functions of integers."""
    for name, operation in COUNTS.items():
        yield function(name, counted(operation), all_integers(1), dtypes=("int32", "int64"), out=INT32)
    for name, count, operation, dtypes in (
        ("brev", 1, lambda x, bits: int(format(x % 2**bits, f"0{bits}b")[::-1], 2), ("int32", "int64")),
        ("mulhi", 2, lambda x, y, bits: x * y >> bits, ("int32", "uint32", "int64", "uint64")),
        ("hadd", 2, lambda x, y, _: x + y >> 1, WORDS),
        ("rhadd", 2, lambda x, y, _: x + y + 1 >> 1, WORDS),
        ("byte_perm", 3, byte_perm, ("int32",)),
    ):
        yield function(name, by_element(operation), all_integers(count), count=count, dtypes=dtypes)
    yield function(
        "mul24", by_element(lambda x, y, _: low_24(x, True) * low_24(y, True)), between(-(2**20), 2**20, 2), count=2,
        dtypes=("int32",),
    )  # fmt: skip
    yield function(
        "sad", lambda x, y, z: ((wide(x) - wide(y)).abs() + wide(z)).to(x.dtype),
        lambda d: (*between(-1000, 1000, 2)(d), d.integers(BLOCK, low=0, high=1000, dtype=torch.uint32)), count=3,
        dtypes=WORDS,
    )  # fmt: skip


CASES = [*arithmetic(), *conversions(), *bits_of_doubles(), *integers()]
