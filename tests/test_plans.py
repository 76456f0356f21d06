"""What is planned once per layout is planned anew where anything of it differs, or other blocks are meant."""

import pytest
import torch

from portability.kernel import Blocks, forget_blocks
from portability.kernels.checks import once_per_layout
from portability.kernels.elementwise import copy, elementwise
from portability.kernels.layer_norm import layer_norm
from portability.kernels.matmul import matmul
from portability.kernels.rms_norm import rms_norm
from portability.kernels.softmax import softmax
from portability.kernels.swiglu import swiglu
from portability.kernels.vector_add import add


class Counted:
    """A function of one or two tensors and a plain value that counts its calls."""

    def __init__(self, tensors: int) -> None:
        self.calls = 0
        function = self._of_one if tensors == 1 else self._of_two
        self.memoised = once_per_layout(function, tensors=tensors)

    def _of_one(self, x, blocks):
        self.calls += 1
        return self.calls

    def _of_two(self, x, y, blocks):
        self.calls += 1
        return self.calls


X = torch.zeros(4, 6)
OTHERS = {
    "shape": torch.zeros(6, 4),
    "strides": torch.zeros(6, 4).t(),
    "dtype": X.half(),
    "device": torch.zeros(4, 6, device="meta"),
}


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize("operands", [lambda x: (x,), lambda x: (x, X), lambda x: (X, x), lambda x: (x, None)])
def test_another_layout_is_planned_anew(which, operands):
    given, other = operands(X), operands(OTHERS[which])
    counted = Counted(len(given))
    assert counted.memoised(*given, None) == counted.memoised(*operands(X + 1), None) == 1
    assert counted.memoised(*other, None) == 2
    assert counted.memoised(*given, None) == 1


def test_one_operand_and_two_of_it_are_two_layouts():
    counted = Counted(2)
    assert (counted.memoised(X, None, None), counted.memoised(X, X, None)) == (1, 2)


def test_other_blocks_are_planned_anew_and_equal_ones_are_not():
    counted = Counted(1)
    plans = [counted.memoised(X, Blocks(BLOCK=size)) for size in (1, 2, 1)]
    assert plans == [1, 2, 1]


def test_blocks_that_were_looked_up_are_forgotten_with_the_plans():
    counted = Counted(1)
    before = counted.memoised(X, None)
    forget_blocks()
    assert counted.memoised(X, None) == before + 1


def test_what_was_refused_is_refused_again():
    def refuse(x):
        raise ValueError("no")

    memoised = once_per_layout(refuse)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            memoised(X)


def test_values_of_other_types_are_told_apart():
    """1 == True == 1.0, and a check of types must not take one for the other."""
    seen = []

    def note(x, y, z, flag):
        seen.append(flag)

    memoised = once_per_layout(note)
    for flag in (True, 1, 1.0, True):
        memoised(X, X, X, flag)
    assert [type(s) for s in seen] == [bool, int, float]


def test_what_cannot_be_hashed_is_refused_by_the_function():
    def check(x, y, z, flag):
        raise TypeError(f"flag is a {type(flag).__name__}")

    with pytest.raises(TypeError, match="flag is a list"):
        once_per_layout(check)(X, X, X, [1])


NEGATED = torch.view_as_complex(torch.ones(4, 6, 2)).conj().imag
BY_ONE = {
    "softmax": softmax,
    "elementwise": copy,
    "add": lambda x: add(x, X),
    "rms_norm": lambda x: rms_norm(x, torch.ones(6)),
    "layer_norm": lambda x: layer_norm(x, torch.ones(6), torch.ones(6)),
    "matmul": lambda x: matmul(x, X.t()),
    "swiglu": lambda x: swiglu(x, X),
}


@pytest.mark.parametrize("operator", BY_ONE)
def test_a_negated_view_is_refused(operator):
    """Torch negates what is read of it; a kernel reads what lies in memory."""
    with pytest.raises(ValueError, match=r"negated view: its memory holds the opposite; call resolve_neg\(\)"):
        BY_ONE[operator](NEGATED)


def test_softmax_refuses_a_dtype_before_it_allocates():
    huge = torch.zeros(1, dtype=torch.int64).expand(2**22, 2**22)
    with pytest.raises(TypeError, match="softmax: x is int64; taken are"):
        softmax(huge)


def test_elementwise_names_what_is_wrong_before_gradients():
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(ValueError, match="operation 'nope'; taken are"):
        elementwise("nope", leaf)
    with pytest.raises(ValueError, match="do not broadcast"):
        elementwise("add", leaf, torch.zeros(4))
    with pytest.raises(ValueError, match="requires a gradient"):
        elementwise("add", leaf, torch.zeros(3))
