"""Binaries over all samples of a case, and blocks that the interpreter saw right."""

from __future__ import annotations

from portability.binaries import excess, interpreted_right
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, Resources, SampleInfo

CASE = CaseInfo("add", ("float32",), (SampleInfo("1"),), binaries=2)


def compiled(sample: str, *hashes: str, blocks: dict[str, int] | None = None) -> Observation:
    resources = tuple(Resources("add_kernel", hash=h) for h in hashes)
    cell = Cell("add", "float32", sample, "cuda:90")
    return Observation(cell, Evidence.COMPILED, Outcome.PASS, resources=resources, blocks=blocks or {})


def test_a_size_taken_as_a_constant_needs_a_binary_a_size() -> None:
    """Three samples with three binaries are one more than the case allows."""
    seen = [compiled("1", "a"), compiled("257", "b"), compiled("300", "c")]
    assert list(excess(seen, [CASE])) == [
        "add-float32-cuda:90: 3 distinct binaries over its samples, and it allows 2"
    ]  # fmt: skip


def test_samples_that_share_a_binary_are_counted_once() -> None:
    assert list(excess([compiled("1", "a"), compiled("257", "b"), compiled("300", "b")], [CASE])) == []


def test_compiled_stays_compiled_and_says_whose_blocks_were_right() -> None:
    """Only the very same blocks count, and only where the interpreter passed."""
    blocks = {"BLOCK": 128}
    right = Observation(
        Cell("add", "float32", "1.as.cuda:90", "interpreter"), Evidence.INTERPRETED, Outcome.PASS, blocks=blocks
    )
    seen = [compiled("1", "a", blocks=blocks), compiled("2", "a", blocks={"BLOCK": 256}), right]
    assert list(interpreted_right(seen)) == ["cuda:90: 1 of 2 compiled cells with blocks"]
    wrong = Observation(right.cell, Evidence.INTERPRETED, Outcome.WRONG, blocks=blocks)
    assert list(interpreted_right([seen[0], wrong])) == []
