"""Which lanes of a value are undefined: masked off in a load without `other`, or computed from such lanes.

It is kept beside the values to name the load and the store of an undefined value, and so that a warning about such a
lane is not given: a lane that is thrown away may overflow. It is an aid; whether an undefined value reaches an output
is judged by running twice with different poison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Handle = Any
KEY = "undefined"  # in TensorHandle.attr


@dataclass(frozen=True)
class Undefined:
    """Undefined lanes, the place of the load that made them so, and of the store that let them out."""

    lanes: NDArray[np.bool_]
    place: tuple[str, int]
    stored: tuple[str, int] = ("", 0)


def mark(handle: Handle, undefined: Undefined) -> Handle:
    """Note undefined lanes on a handle."""
    handle.attr[KEY] = undefined
    return handle


def lanes_of(*handles: Handle) -> NDArray[np.bool_] | None:
    """Return the lanes that are undefined in any of the handles, or None."""
    found = [h.attr[KEY].lanes for h in handles if KEY in h.attr]
    if not found:
        return None
    lanes: NDArray[np.bool_] = found[0]
    for more in found[1:]:
        lanes = lanes | more
    return lanes


def spread(out: Handle, *sources: Handle) -> Handle:
    """Mark `out`, computed lane by lane from `sources`, and return it."""
    lanes = lanes_of(*sources)
    if lanes is not None:
        place = next(s.attr[KEY].place for s in sources if KEY in s.attr)
        out.attr[KEY] = Undefined(np.broadcast_to(lanes, out.data.shape), place)
    return out


def moved(out: Handle, source: Handle, move: Callable[[NDArray[np.bool_]], NDArray[np.bool_]]) -> Handle:
    """Mark `out`, whose lanes are those of `source` rearranged or combined as `move` says, and return it."""
    if KEY in source.attr:
        undefined = source.attr[KEY]
        lanes = np.asarray(move(undefined.lanes)).reshape(out.data.shape)
        if lanes.any():
            out.attr[KEY] = Undefined(lanes, undefined.place)
    return out
