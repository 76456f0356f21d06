"""`portability check` follows where a file's tensors would be on a device, and says nothing of what it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from portability.checks.hosts import Hosts
from portability.checks.layouts import Asked

DEV = "cpu"  # what `run` is given under the interpreter


class Session(SimpleNamespace):
    """What of an interpreter's session is used; `told` are the arguments that were reported."""

    def __init__(self) -> None:
        self.told: list[str] = []
        super().__init__(launching=[], targets=SimpleNamespace(every=lambda: ["cuda:90"]), report=self)

    def warn(self, code: str, message: str, targets: list[str]) -> None:
        assert (code, targets) == ("host-tensor", ["cuda:90"])
        self.told.append(message.partition(" ")[0])


def told(make: Callable[[], Any]) -> bool:
    """Whether a launch that is given what `make` returns is reported."""
    session = Session()
    with Hosts(session):
        value = make()
        for judge in session.launching:
            judge({"x_ptr": value, "n": 4})
    return session.told == ["x_ptr"]


LEFT: dict[str, Callable[[], Any]] = {
    "made without a device": lambda: torch.zeros(4),
    "from a list": lambda: torch.tensor([1.0, 2.0]),
    "computed from host tensors": lambda: torch.arange(4) * 2 + torch.ones(4),
    "a view": lambda: torch.zeros(4, 4)[1:, ::2],
    "after a cast": lambda: torch.zeros(4).to(torch.float16),
    "in a tuple": lambda: (torch.zeros(4, device=DEV), torch.zeros(4)),
    "a parameter": lambda: torch.nn.Linear(2, 2).weight,
}
PLACED: dict[str, Callable[[], Any]] = {
    "made on the device": lambda: torch.zeros(4, device=DEV),
    "moved": lambda: torch.arange(4).to(DEV),
    "moved by name": lambda: torch.arange(4).to(dtype=torch.float32, device=torch.device(DEV)),
    "like another": lambda: torch.empty_like(torch.zeros(4).to(DEV)),
    "of another": lambda: torch.zeros(4, device=DEV).new_zeros(4),
    "to another": lambda: torch.zeros(4).to(torch.zeros(4, device=DEV)),
    "computed with one of the device": lambda: torch.zeros(4, device=DEV) + torch.tensor(2.0),
    "written into": lambda: torch.zeros(4, device=DEV).copy_(torch.ones(4)),
    "a module that was moved": lambda: torch.nn.Linear(2, 2).to(DEV).weight,
    "pinned": lambda: torch.zeros(4, pin_memory=False, device=DEV),
    "no tensor": lambda: 4,
    "without elements": lambda: torch.zeros(0),
}


@pytest.mark.parametrize("make", LEFT.values(), ids=LEFT)
def test_a_tensor_that_is_left_on_the_host_is_told(make: Callable[[], Any]) -> None:
    assert told(make)


@pytest.mark.parametrize("make", PLACED.values(), ids=PLACED)
def test_a_tensor_of_the_device_is_not(make: Callable[[], Any]) -> None:
    assert not told(make)


def test_a_default_device_places_what_names_none() -> None:
    def make() -> torch.Tensor:
        with torch.device(DEV):
            return torch.zeros(4)

    assert not told(make)


def test_a_global_default_device_does_too() -> None:
    torch.set_default_device(DEV)
    try:
        assert not told(lambda: torch.zeros(4))
    finally:
        torch.set_default_device(None)


def test_what_was_made_before_is_unknown() -> None:
    before = torch.zeros(4)
    assert not told(lambda: before)


def test_what_is_taken_to_the_device_is_a_copy_there() -> None:
    """With its strides, and once: what is on the device already is taken as it is."""
    own, strided = torch.zeros(4), torch.zeros(8)[::2]
    with Hosts(Session()):
        there = own.to(DEV)
        there += 1
        strided_there = strided.to(DEV)
        assert there.to(DEV) is there
        assert there[1:].to(DEV).data_ptr() == there[1:].data_ptr()
        assert (there * 2).to(DEV).eq(2).all()
    assert own.eq(0).all()
    assert strided_there.data_ptr() != strided.data_ptr()
    assert strided_there.stride() == (2,)


def test_a_tensor_that_gathers_a_gradient_is_taken_as_it_is() -> None:
    """Its gradient is asked for afterwards."""
    weight = torch.zeros(4, requires_grad=True)
    with Hosts(Session()):
        assert weight.to(DEV) is weight


class Wrapped(torch.Tensor):
    """A tensor without memory of its own."""

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Wrapped:
        made: Wrapped = torch.Tensor._make_wrapper_subclass(cls, held.shape)
        made.held = held
        return made

    held: torch.Tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return func(*(a.held if isinstance(a, Wrapped) else a for a in args), **(kwargs or {}))


def test_tensors_without_memory_of_their_own_are_let_be() -> None:
    """Neither where they are nor which layout they have can be told."""
    with Hosts(Session()):
        assert (Wrapped(torch.ones(4)) + 1).eq(2).all()
    asked = Asked(lambda: [Wrapped(torch.ones(4)), torch.ones(4)], strides=True)
    with asked:
        wrapped, plain = asked.data()
        wrapped.is_contiguous()
        plain.view(2, 2).is_contiguous()
    assert asked.found == {1}


def test_inputs_whose_layout_is_looked_at_are_known() -> None:
    """Also of what was made of them on the device, and by their strides where these are compared."""
    for strides, found in ((False, {0, 1}), (True, {0, 1, 2})):
        asked = Asked(lambda: {"a": torch.ones(4), "more": (torch.ones(4), torch.ones(4), torch.ones(4))}, strides)
        with asked:
            data = asked.data()
            data["a"].to(torch.float64).contiguous()
            assert data["more"][0].is_contiguous()
            assert data["more"][1].stride(0) == 1
        assert asked.found == found
