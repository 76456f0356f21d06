"""Arguments of a launch as JSON, and stand-ins for them: what Triton's binder asks of an argument, without its values.

A tensor becomes its dtype, shape, strides, and how its address is aligned. That is all that compiling asks, and it is
what another process makes a `Pointer` of, which has no memory: a tensor of 80 GB is as cheap as one of four bytes.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

ALIGNED = 16  # bytes: what Triton specialises addresses by
PLACE = 2**33  # a stand-in's address: far beyond 32 bits, as a device's are


class UnknownArgumentError(ValueError):
    """An argument of which no stand-in can be made; the message names it."""


class Pointer:
    """What Triton's binder asks of a tensor: dtype, address, and how far it reaches."""

    def __init__(self, dtype: Any, offset: int, size: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        """`offset` is that of the address from a multiple of 16 bytes, `size` the bytes of its storage."""
        self.dtype, self.shape = dtype, shape
        self._offset, self._size, self._strides = offset, size, strides

    def data_ptr(self) -> int:
        """Return an address that is aligned as the tensor's was."""
        return PLACE + self._offset

    def ptr_range(self) -> int:
        """Return the bytes of the storage: AMD's compiler asks whether 32 bits reach it."""
        return self._size

    def stride(self) -> tuple[int, ...]:
        """Return the strides in elements."""
        return self._strides


def encode(value: Any) -> Any:
    """Return `value` as JSON's types: plain ones as they are, others as a table with one key, which names the kind."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, (tuple, list)):
        return _sequence(value)
    return next((made for encoder in _ENCODERS if (made := encoder(value)) is not None), _unknown(value))


def decode(name: str, value: Any, tensor: Callable[[Mapping[str, Any]], Any] | None = None) -> Any:
    """Return a stand-in for an encoded argument. Raises `UnknownArgumentError`, naming `name`.

    `tensor` makes what stands for a tensor; without it, a `Pointer` does.
    """
    try:
        return _made(value, tensor or pointer)
    except UnknownArgumentError as error:
        raise UnknownArgumentError(f"argument {name!r} was {error}") from None


def _made(value: Any, tensor: Callable[[Mapping[str, Any]], Any]) -> Any:
    def made(inner: Any) -> Any:
        return _made(inner, tensor)

    if isinstance(value, list):
        return [made(v) for v in value]
    if not isinstance(value, Mapping):
        return value
    (kind, data), *_ = value.items()
    if kind == "tensor":
        return tensor(data)
    if kind in _HOLDERS:
        return _HOLDERS[kind](data, made)
    if kind not in _DECODERS:
        raise UnknownArgumentError(f"{data if kind == 'unknown' else kind}, of which no stand-in can be made")
    return _DECODERS[kind](data)


def name_storages(arguments: Mapping[str, Any]) -> None:
    """Give the storages of encoded tensors small numbers, in place: addresses say nothing elsewhere."""
    known: dict[int, int] = {}
    for tensor in (t for v in arguments.values() for t in tensors(v)):
        if "storage" in tensor:
            tensor["storage"] = known.setdefault(tensor["storage"], len(known))


def storages(given: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Return the bytes of each storage of encoded tensors, by its number."""
    return {t["storage"]: t["bytes"] for t in given}


def tensors(value: Any) -> list[dict[str, Any]]:
    """Return the tensors in an encoded argument."""
    if isinstance(value, dict):
        kind, data = next(iter(value.items()))
        return [data] if kind == "tensor" else tensors(data["base"] if kind == "descriptor" else data)
    return [t for v in value for t in tensors(v)] if isinstance(value, list) else []


def dtype_of(name: str) -> Any:
    """Return torch's or Triton's dtype of a name ("float16", "fp8e4nv")."""
    import torch
    import triton.language as tl

    found = getattr(torch, name, None)
    return found if isinstance(found, torch.dtype) else tl.dtype(name)


# ---------------------------------------------------------------------------------------- values -> JSON's types


def _sequence(value: Any) -> Any:
    items = [encode(v) for v in value]
    if isinstance(value, list):
        return items
    if hasattr(value, "_fields"):
        return {"named": [type(value).__module__, type(value).__qualname__, items]}
    return {"tuple": items}


def _tensor(value: Any) -> Any:
    if not (hasattr(value, "data_ptr") and hasattr(value, "dtype")):
        return None
    base = getattr(value, "base", value)  # Triton's view of a tensor as another dtype
    stride, storage = getattr(base, "stride", None), getattr(base, "untyped_storage", None)
    made: dict[str, Any] = {
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": [int(n) for n in getattr(base, "shape", ())],
        "strides": [int(n) for n in stride()] if callable(stride) else [],
        "bytes": 0,
    }
    if callable(storage):
        held = storage()
        more = {"at": int(getattr(base, "storage_offset", int)()), "offset": value.data_ptr() % ALIGNED}
        made |= {"bytes": int(held.nbytes()), "storage": held.data_ptr(), **{k: v for k, v in more.items() if v}}
    elif value.data_ptr() % ALIGNED:
        made["offset"] = value.data_ptr() % ALIGNED
    return {"tensor": made}


def _constexpr(value: Any) -> Any:
    return {"constexpr": encode(value.value)} if type(value).__name__ == "constexpr" else None


def _dtype(value: Any) -> Any:
    if type(value).__name__ != "dtype":
        return None
    return {"dtype": str(value)} if type(value).__module__ == "torch" else {"type": str(value)}


def _descriptor(value: Any) -> Any:
    if type(value).__name__ != "TensorDescriptor":
        return None
    numbers = {n: [int(x) for x in getattr(value, n)] for n in ("shape", "strides", "block_shape")}
    more = {n: getattr(value, n) for n in ("padding", "round_f32_to_tf32") if hasattr(value, n)}
    return {"descriptor": {"base": encode(value.base), **numbers, **more}}


def _function(value: Any) -> Any:
    """A jitted function that is passed to a kernel."""
    if not (hasattr(value, "fn") and hasattr(value, "arg_names")):
        return None
    return {"function": [value.fn.__module__, value.fn.__qualname__]}


def _number(value: Any) -> Any:
    numpy = type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "item")
    return encode(value.item()) if numpy else None


def _member(value: Any) -> Any:
    if not hasattr(type(value), "__members__"):
        return None
    return {"member": [type(value).__module__, type(value).__qualname__, value.name]}


def _module(value: Any) -> Any:
    """A module that a kernel within a function takes from around it, as `tl`."""
    return {"module": value.__name__} if isinstance(value, ModuleType) else None


def _unknown(value: Any) -> Any:
    return {"unknown": f"{type(value).__module__}.{type(value).__qualname__}"}


_ENCODERS: Sequence[Callable[[Any], Any]] = (
    _tensor, _constexpr, _dtype, _descriptor, _function, _number, _member, _module,
)  # fmt: skip

# ------------------------------------------------------------------------------------- JSON's types -> stand-ins


def pointer(data: Mapping[str, Any]) -> Pointer:
    """Return a stand-in for a tensor that has no memory."""
    shape, strides = tuple(data["shape"]), tuple(data["strides"])
    return Pointer(dtype_of(data["dtype"]), data.get("offset", 0), data["bytes"], shape, strides)


def _made_constexpr(data: Any, made: Callable[[Any], Any]) -> Any:
    import triton.language as tl

    return tl.constexpr(made(data))


def _made_descriptor(data: Mapping[str, Any], made: Callable[[Any], Any]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    base = {"tensor": {**data["base"]["tensor"], "whole": True}}
    return TensorDescriptor(**{**data, "base": made(base)})


def _attribute(module: str, qualified: str) -> Any:
    """Return what a module holds under a qualified name."""
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnknownArgumentError(f"{module}.{qualified}, which is not there: {error}") from error
    return found


def _made_function(data: Any) -> Any:
    from portability.record.rebuild import unwrapped

    return unwrapped(_attribute(*data))


def _triton_type(name: str) -> Any:
    """Return Triton's type: "int32" is one as well as torch's, and a kernel casts to Triton's alone."""
    import triton.language as tl

    return tl.dtype(name)


_HOLDERS: Mapping[str, Callable[[Any, Callable[[Any], Any]], Any]] = {  # what holds other arguments
    "tuple": lambda data, made: tuple(made(v) for v in data),
    "named": lambda data, made: _attribute(*data[:2])(*(made(v) for v in data[2])),
    "constexpr": _made_constexpr,
    "descriptor": _made_descriptor,
}
_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "dtype": lambda data: dtype_of(data.removeprefix("torch.")),
    "type": _triton_type,
    "function": _made_function,
    "member": lambda data: _attribute(*data[:2])[data[2]],
    "module": importlib.import_module,
}
