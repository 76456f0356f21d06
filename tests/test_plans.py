"""What is planned once per layout is planned anew where anything of it differs, or other blocks are meant."""

import pytest
import torch

from portability.kernel import Blocks, forget_blocks
from portability.kernels.checks import once_per_layout


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
