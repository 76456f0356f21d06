"""Values as Python text that makes them again."""

from __future__ import annotations

import base64
import math
import textwrap
import zlib
from typing import Any

import torch

FEW = 96  # elements that are written out
COLUMNS = 100


class UnwritableError(ValueError):
    """A value that no text makes again; the message names it."""


def plain(value: Any) -> str:  # noqa: PLR0911 - one return a kind of value
    """Return a number, string, dtype or a list of these as Python. Raises `UnwritableError` for anything else."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes, torch.dtype)):
        return repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        inner = ", ".join(plain(v) for v in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, (torch.memory_format, torch.layout)):
        return repr(value)
    if isinstance(value, torch.device):
        return "DEVICE"
    raise UnwritableError(f"{type(value).__name__} {value!r} cannot be written into a file")


def tensor(value: torch.Tensor) -> str:
    """Return an expression for the values, dtype and strides of a tensor: written out where few, else packed."""
    dense = value.detach().cpu()
    shape, kind = tuple(dense.shape), repr(dense.dtype)
    if dense.numel() > 1 and torch.equal(_raw(dense), _raw(dense.flatten()[:1].expand(dense.numel()))):
        made = f"torch.full({shape}, {plain(_scalar(dense.flatten()[0]))}, dtype={kind})"
    elif dense.numel() <= FEW:
        made = f"torch.tensor({_wrapped(_nested(dense))}, dtype={kind})"
        if dense.numel() == 0:
            made = f"torch.empty({shape}, dtype={kind})"
    else:
        packed = base64.b64encode(zlib.compress(_raw(dense).numpy().tobytes(), 9)).decode()
        lines = "\n".join(f'    "{line}"' for line in textwrap.wrap(packed, COLUMNS))
        made = f"unpacked({kind}, {shape}, (\n{lines}\n))"
    return laid_out(made, value)


def laid_out(made: str, like: torch.Tensor) -> str:
    """Return the expression `made`, of a contiguous tensor, with the strides and the offset of `like`."""
    if like.is_contiguous() and like.storage_offset() == 0:
        return made
    return f"laid_out({made}, {tuple(like.stride())}, {like.storage_offset()})"


def _raw(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous().reshape(-1).view(torch.uint8)


def _nested(value: torch.Tensor) -> str:
    if value.ndim == 0:
        return plain(_scalar(value))
    return f"[{', '.join(_nested(v) for v in value)}]"


def _scalar(value: torch.Tensor) -> Any:
    if not value.dtype.is_floating_point:
        return value.item()
    number = value.double().item() if value.dtype.itemsize > 1 else value.float().item()
    # -0.0 and float64, of which expected values are, stay as they are.
    whole = math.isfinite(number) and abs(number) < 100 and number == int(number) and str(number) != "-0.0"
    return int(number) if whole and value.dtype is not torch.float64 else number


def _wrapped(text: str) -> str:
    return text if len(text) < COLUMNS else "\n" + textwrap.indent(textwrap.fill(text, COLUMNS), "    ") + "\n"


HELPERS = {
    "unpacked": '''
def unpacked(dtype, shape, text):
    """Values that are too many to write out."""
    raw = zlib.decompress(base64.b64decode(text))
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype).reshape(shape)
''',
    "laid_out": '''
def laid_out(values, strides, offset):
    """The same values with these strides, `offset` elements into their storage."""
    extent = sum((n - 1) * s for n, s in zip(values.shape, strides)) + 1 if values.numel() else 0
    tensor = torch.zeros(offset + extent, dtype=values.dtype).as_strided(values.shape, strides, offset)
    return tensor.copy_(values)
''',
}  # what the expressions call, by name
IMPORTS = {"unpacked": "import base64\nimport zlib\n"}
