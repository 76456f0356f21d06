"""Each fault of a kernel is found, with its line, and a right kernel raises no alarm."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import triton.language as tl

from portability.backend import Problem
from portability.interpret import Interpretation, KernelError, SpinTimeout, Unsupported, opened
from portability.model import Finding, Outcome, Target

from . import interpreted as k

TARGET = Target("interpreter", "interpreter")


def line_of(kernel: Any, text: str) -> str:
    """Return "engine/interpreted.py:N", the line of `kernel` that holds `text`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return f"engine/interpreted.py:{first + next(i for i, line in enumerate(lines) if text in line)}"


def run(call: Callable[[], Any], order: int = 0, poison: int = 0, trace: bool = False) -> Interpretation:
    with opened(TARGET) as session:
        session.vary(order, poison)
        session.trace = trace
        call()
    return session


def only(found: list[Problem] | list[Finding], code: str, line: str) -> str:
    """Return the message of the one finding, which has this code and line."""
    assert [f.code for f in found] == [code]
    assert found[0].line.endswith(line)
    return found[0].message


# -------------------------------------------------------------------------------------------------------- bounds


def test_a_load_past_the_end_names_tensor_lanes_distance_and_program() -> None:
    x, out = torch.ones(70), torch.zeros(128)
    session = run(lambda: k.copy_unmasked[(2,)](x, out, BLOCK=64))
    message = only(session.problems, "out-of-bounds", line_of(k.copy_unmasked, "tl.load"))
    assert message == (
        "copy_unmasked: load of 58 of 64 lanes outside x_ptr (float32[70]), up to 232 bytes (58 elements) past its end "
        "(first at lane 6), program (1, 0, 0)"
    )
    assert session.problems[0].outcome is Outcome.OUT_OF_BOUNDS


def test_a_store_past_the_end_is_not_executed() -> None:
    whole = torch.zeros(128)
    out = whole[:70]
    session = run(lambda: k.copy_unmasked[(2,)](torch.ones(128), out, BLOCK=64))
    message = only(session.problems, "out-of-view", line_of(k.copy_unmasked, "tl.store"))
    assert "out_ptr (float32[70], inside its storage)" in message
    assert whole.sum() == 70


@pytest.mark.parametrize(("elements", "faults"), [(64, 0), (63, 2)])
def test_one_element_past_the_end_is_outside(elements: int, faults: int) -> None:
    session = run(lambda: k.copy_unmasked[(1,)](torch.ones(elements), torch.zeros(elements), BLOCK=64))
    assert [p.code for p in session.problems] == ["out-of-bounds"] * faults


def test_a_load_before_the_start() -> None:
    session = run(lambda: k.copy_before[(1,)](torch.ones(8), torch.zeros(8), BLOCK=8))
    message = only(session.problems, "out-of-bounds", line_of(k.copy_before, "tl.load"))
    assert "up to 12 bytes (3 elements) before its start" in message


def test_a_view_may_be_reached_from_its_first_to_its_last_element() -> None:
    x = torch.arange(16.0)[::2]
    out = torch.zeros(8)
    session = run(lambda: k.copy_strided[(1,)](x, out, 2, BLOCK=8))
    assert session.problems == []
    assert torch.equal(out, x)
    beyond = run(lambda: k.copy_strided[(1,)](x[:4], out, 2, BLOCK=8))
    only(beyond.problems, "out-of-view", line_of(k.copy_strided, "tl.load"))


def test_a_pointer_keeps_its_tensor_through_an_integer() -> None:
    session = run(lambda: k.copy_by_address[(1,)](torch.ones(6), torch.zeros(8), BLOCK=8))
    message = only(session.problems, "out-of-bounds", line_of(k.copy_by_address, "tl.load"))
    assert "2 of 8 lanes outside x_ptr" in message


def test_pointers_of_two_tensors_in_one_block_are_each_judged() -> None:
    session = run(lambda: k.copy_either[(1,)](torch.ones(8), torch.ones(4), torch.zeros(8), BLOCK=8))
    message = only(session.problems, "out-of-bounds", line_of(k.copy_either, "tl.load(chosen)"))
    assert "2 of 4 lanes outside y_ptr" in message


def test_addresses_from_a_table_are_judged_by_the_tensors_that_are_alive() -> None:
    tensors = [torch.full((8,), float(i)) for i in range(2)]
    table = torch.tensor([t.data_ptr() for t in tensors])
    out = torch.zeros(16)
    session = run(lambda: k.copy_from_table[(2,)](table, out, BLOCK=8))
    assert session.problems == []
    assert torch.equal(out, torch.cat(tensors))
    wild = run(lambda: k.copy_from_table[(1,)](torch.tensor([64]), out, BLOCK=8))
    assert "8 of 8 lanes in no tensor" in only(wild.problems, "out-of-bounds", line_of(k.copy_from_table, "+ offsets"))


def test_an_atomic_past_the_end() -> None:
    out = torch.zeros(6, dtype=torch.int32)
    session = run(lambda: k.add_past[(1,)](out, BLOCK=8))
    assert "atomic of 2 of 8 lanes" in only(session.problems, "out-of-bounds", line_of(k.add_past, "atomic_add"))
    assert out.tolist() == [1] * 6


def test_what_is_stored_between_the_elements_of_a_view_is_outside_of_it() -> None:
    """The columns beside a part of a matrix; the part itself, and every third column, are written as they are."""
    whole = torch.zeros(5, 16)
    session = run(lambda: k.mark_rows[(4,)](whole[:, :12], 16, 14, BLOCK=16))
    message = only(session.problems, "out-of-view", line_of(k.mark_rows, "tl.store"))
    assert "store of 2 of 14 lanes outside out_ptr (float32[5, 12], inside its storage), in the gaps" in message
    assert whole[:4, :12].eq(1).all()
    assert whole.sum() == 48
    assert run(lambda: k.mark_rows[(5,)](torch.zeros(5, 16)[:, :12], 16, 12, BLOCK=16)).problems == []
    assert run(lambda: k.mark_rows[(1,)](torch.zeros(16, 3).T[0], 3, 1, BLOCK=16)).problems == []


def test_a_descriptor_of_more_rows_than_the_tensor_has() -> None:
    x, out = torch.ones(12, 16), torch.zeros(16, 16)
    right = run(lambda: k.copy_described[(1,)](x, out, 12, 16, BLOCK=16))
    assert right.problems == []
    assert out.sum() == 12 * 16
    wrong = run(lambda: k.copy_described[(1,)](x, out, 16, 16, BLOCK=16))
    message = only(wrong.problems, "out-of-bounds", line_of(k.copy_described, "x.load"))
    assert "64 of 256 lanes outside x_ptr" in message


# --------------------------------------------------------------------------------------------------------- order


def test_a_hand_over_between_programs_depends_on_the_order_and_is_explained() -> None:
    def outcome(order: int) -> torch.Tensor:
        x, total = torch.ones(64), torch.zeros(5)
        run(lambda: k.hand_over[(4,)](x, total, BLOCK=16), order)
        return x

    assert not torch.equal(outcome(0), outcome(1))
    assert not torch.equal(outcome(0), outcome(2))
    session = run(lambda: k.hand_over[(4,)](torch.ones(64), torch.zeros(5), BLOCK=16), trace=True)
    message = only(session.problems, "race", line_of(k.hand_over, "carry = "))
    assert "program (1, 0, 0) reads element [1] of total_ptr, which program (0, 0, 0) writes" in message


def test_a_sum_without_atomics_is_a_race_although_every_order_gives_it() -> None:
    out = torch.zeros(1)
    session = run(lambda: k.add_unordered[(4,)](torch.ones(64), out, BLOCK=16))
    message = only(session.problems, "race", line_of(k.add_unordered, "tl.store"))
    assert out.item() == 64
    assert "programs (0, 0, 0) and (1, 0, 0) store different values to element [0] of out_ptr" in message


def test_a_lock_orders_programs() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    session = run(lambda: k.add_locked[(4,)](torch.zeros(1, dtype=torch.int32), out))
    assert session.problems == []
    assert out.item() == 6


@pytest.mark.parametrize(("sem", "faults"), [("acq_rel", 0), ("relaxed", 1), ("release", 1), ("acquire", 1)])
def test_what_others_stored_is_read_after_a_release_and_an_acquire(sem: str, faults: int) -> None:
    """The values come out right in every order: it is the memory model that is not kept."""
    x, out, count = torch.ones(4), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    session = run(lambda: k.last_one_sums[(4,)](x, torch.zeros(4), count, out, PROGRAMS=4, SEM=sem))
    assert out.item() == 4
    assert len(session.problems) == faults
    for problem in session.problems:
        assert problem.line.endswith(line_of(k.last_one_sums, "tl.sum"))
        assert "program (3, 0, 0) reads element [0] of part_ptr, which program (0, 0, 0) writes" in problem.message


@pytest.mark.parametrize(("scope", "faults"), [("cta", 1), ("gpu", 0), ("sys", 0)])
def test_an_atomic_within_one_program_is_none_to_others(scope: str, faults: int) -> None:
    count = torch.zeros(1, dtype=torch.int32)
    session = run(lambda: k.count_in_scope[(4,)](count, SCOPE=scope))
    assert count.item() == 4
    assert [p.code for p in session.problems] == ["race"] * faults
    for problem in session.problems:
        assert 'scope="cta"' in problem.message


@pytest.mark.parametrize(("sem", "faults"), [("acq_rel", 0), ("relaxed", 1)])
def test_stores_are_ordered_by_atomics_that_order_something(sem: str, faults: int) -> None:
    counts, out = torch.zeros(4, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    session = run(lambda: k.claim[(4,)](counts, out, SEM=sem))
    assert [p.code for p in session.problems] == ["race"] * faults


@pytest.mark.parametrize(("locks", "faults"), [(1, 0), (2, 1)])
def test_programs_are_ordered_by_a_lock_that_both_take(locks: int, faults: int) -> None:
    out = torch.zeros(1, dtype=torch.int32)
    session = run(lambda: k.add_under_lock[(4,)](torch.zeros(2, dtype=torch.int32), out, LOCKS=locks))
    assert out.item() == 4
    assert [p.code for p in session.problems] == ["race"] * faults


@pytest.mark.parametrize(("linked", "faults"), [(True, 0), (False, 1)])
def test_what_a_program_may_see_it_hands_on(linked: bool, faults: int) -> None:
    flags, kept, out = (torch.zeros(n, dtype=torch.int32) for n in (3, 1, 1))
    session = run(lambda: k.pass_through[(3,)](flags, kept, out, LINKED=linked))
    assert out.item() == 5
    assert [p.code for p in session.problems] == ["race"] * faults


def test_programs_may_read_what_they_wrote_themselves() -> None:
    session = run(lambda: k.add_own[(4,)](torch.ones(64), BLOCK=16))
    assert session.problems == []
    assert session.entangled


def test_programs_that_share_nothing_are_known() -> None:
    """No order of them can be told from another, so that no further one is tried."""
    session = run(lambda: k.copy_strided[(1,)](torch.ones(8), torch.zeros(8), 1, BLOCK=8))
    assert not session.entangled


def test_programs_may_store_the_same_value() -> None:
    assert run(lambda: k.flag[(4,)](torch.zeros(1, dtype=torch.int32))).problems == []


def test_lanes_of_one_store_that_meet_are_told_apart_by_the_order() -> None:
    index = torch.tensor([0, 1, 1, 2], dtype=torch.int32)

    def outcome(order: int) -> list[int]:
        out = torch.zeros(4, dtype=torch.int32)
        run(lambda: k.scatter[(1,)](index, out, BLOCK=4), order)
        return out.tolist()

    assert outcome(0) == [0, 2, 3, 0]
    assert outcome(1) == [0, 1, 3, 0]
    session = run(lambda: k.scatter[(1,)](index, torch.zeros(4, dtype=torch.int32), BLOCK=4), trace=True)
    message = only(session.problems, "store-collision", line_of(k.scatter, "tl.store"))
    assert "lanes 1 and 2 of one store write different values to element [1] of out_ptr" in message


# --------------------------------------------------------------------------------------------- undefined lanes


def test_lanes_without_other_follow_the_poison_and_are_named() -> None:
    x = torch.ones(2, 50)

    def outcome(poison: int) -> tuple[torch.Tensor, Interpretation]:
        out = torch.zeros(2)
        session = run(lambda: k.row_sum[(2,)](x, out, 50, BLOCK=64), poison=poison)
        return out, session

    (first, session), (second, _) = outcome(0), outcome(1)
    assert not torch.equal(first, second)
    (problem,) = session.undefined()
    assert problem.outcome is Outcome.UNDEFINED_VALUE
    assert problem.line.endswith(line_of(k.row_sum, "tl.store"))
    assert line_of(k.row_sum, "tl.load") in problem.message


def test_lanes_that_are_thrown_away_are_no_fault() -> None:
    x = torch.arange(50.0)
    for poison in (0, 1):
        out = torch.zeros(1)
        session = run(partial(k.row_maximum[(1,)], x, out, 50, BLOCK=64), poison=poison)
        assert out.item() == 49
        assert session.undefined() == []
        assert session.warnings == []


@pytest.mark.parametrize(("kernel", "last"), [(k.add_once, 1), (k.add_after_acquire, 8)])
def test_a_plain_load_may_come_before_the_atomics_of_others(kernel: Any, last: int) -> None:
    """In the third order, where its program has acquired nothing; else it sees what came before it."""
    for order, total in ((0, 8), (1, 8), (2, last)):
        out = torch.zeros(1, dtype=torch.int32)
        run(partial(kernel[(8,)], out, torch.zeros(1, dtype=torch.int32)), order)
        assert out.item() == total


@pytest.mark.parametrize(
    ("kernel", "variant", "x", "plain"),
    [
        (k.rounded_difference, "fused-product", 1.1, 0.0),
        (k.power, "flushed-exp2", -130.0, 2.0**-130),
        (k.quotient, "approximate-quotient", 49.0, 1.0),
        (k.root, "approximate-root", 49.0, 7.0),
        (k.root, "flushed-root", 2.0**-130, 2.0**-65),
        (k.reciprocal_root, "flushed-root", 2.0**-130, 2.0**65),
    ],
)
def test_arithmetic_of_other_targets_is_tried_and_its_line_kept(
    kernel: Any, variant: str, x: float, plain: float
) -> None:
    """A product fused into a sum, a power and the operand of a root flushed to 0, others off in the last place."""
    made = {}
    for tried in ("", variant):
        out = torch.empty(16)
        with opened(TARGET) as session:
            session.vary_arithmetic(tried)
            kernel[(1,)](torch.full((16,), x), out, BLOCK=16)
        made[tried] = out
        varied = session.varied()
        assert (varied is None) == (tried == "")
    assert made[""].eq(plain).all()
    assert made[variant].ne(plain).all()
    assert varied is not None
    assert varied[0].endswith(line_of(kernel, "tl.store"))
    assert "cuda:90" in varied[2]


def test_only_variants_that_could_change_something_are_offered() -> None:
    """A run in each costs as much as the first one did."""
    session = run(lambda: k.root[(1,)](torch.full((16,), 49.0), torch.empty(16), BLOCK=16))
    assert session.variants == ("approximate-root",)
    session = run(lambda: k.root[(1,)](torch.full((16,), 2.0**-130), torch.empty(16), BLOCK=16))
    assert session.variants == ("flushed-root", "approximate-root")
    session = run(lambda: k.copy_unmasked[(1,)](torch.ones(64), torch.zeros(64), BLOCK=64))
    assert session.variants == ()


# ----------------------------------------------------------------------------------------------------- progress


@pytest.mark.skipif(not hasattr(tl, "atomic_poll"), reason="Triton 3.9 brought tl.atomic_poll")
def test_a_poll_waits_for_earlier_programs_alone() -> None:
    """Of which devices start in order; for a value that no earlier one stores, it would wait for ever."""
    out = torch.zeros(4, dtype=torch.int32)
    assert run(lambda: k.poll[(4,)](torch.zeros(5, dtype=torch.int32), out, AHEAD=0), order=1).problems == []
    assert out.tolist() == [1, 1, 1, 1]
    with pytest.raises(SpinTimeout, match="polls for a value that nothing stores") as caught:
        run(lambda: k.poll[(4,)](torch.zeros(6, dtype=torch.int32), out, AHEAD=1))
    assert caught.value.line.endswith(line_of(k.poll, "atomic_poll"))


def test_a_barrier_of_all_programs_cannot_end_and_is_seen_at_once() -> None:
    with pytest.raises(SpinTimeout, match="never end") as caught:
        run(lambda: k.barrier[(4,)](torch.zeros(1, dtype=torch.int32), N=4))
    assert caught.value.line.endswith(line_of(k.barrier, "while"))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_program_may_wait_for_one_before_it_in_every_order(order: int) -> None:
    total = torch.zeros(6)
    session = run(lambda: k.look_back[(6,)](torch.ones(48), total, torch.zeros(6, dtype=torch.int32), BLOCK=8), order)
    assert session.problems == []
    assert total.tolist() == [8, 16, 24, 32, 40, 48]


def test_a_barrier_cannot_end_in_reverse_either() -> None:
    with pytest.raises(SpinTimeout, match=r"program \(0, 0, 0\): a loop that can never end"):
        run(lambda: k.barrier[(4,)](torch.zeros(1, dtype=torch.int32), N=4), order=1)


def test_a_wait_that_counts_its_turns_ends_by_the_clock() -> None:
    def call() -> None:
        with opened(TARGET) as session:
            session.program_seconds = 0.2
            k.counts_while_waiting[(1,)](torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))

    with pytest.raises(SpinTimeout, match=r"after 0\.2 s"):
        call()


def test_a_loop_that_ends_is_left_alone() -> None:
    out = torch.ones(1, dtype=torch.int32)
    run(lambda: k.counts_down[(1,)](out, 300))
    assert out.item() == 0


# ------------------------------------------------------------------------------------------------- what is refused


def test_inline_assembly_is_unsupported_by_name() -> None:
    with pytest.raises(Unsupported, match=r"mov\.b32"):
        run(lambda: k.assembly[(1,)](torch.zeros(1, dtype=torch.int32)))


@pytest.mark.parametrize(("kernel", "text"), [(k.not_a_power_of_two, "arange"), (k.block_condition, "if ")])
def test_what_the_front_end_refuses_has_its_line(kernel: Any, text: str) -> None:
    with pytest.raises(KernelError) as caught:
        run(lambda: kernel[(1,)](torch.zeros(96, dtype=torch.int32)))
    assert caught.value.line.endswith(line_of(kernel, text))


# ------------------------------------------------------------------------------------------------------- warnings


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


NAN = float("nan")
FAULTY: list[tuple[str, Any, str, Callable[[Any], Any]]] = [
    ("int-overflow", k.overflowing, "n * n", lambda q: q(torch.zeros(1, dtype=torch.int64), 70_000)),
    ("mixed-signs", k.divided, "//", lambda q: q(ints(-7), ints(2), ints(0))),
    ("mixed-signs", k.remainder, "%", lambda q: q(torch.tensor([-7.0]), torch.tensor([2.0]), torch.zeros(1))),
    ("div-by-zero", k.divided, "//", lambda q: q(ints(7), ints(0), ints(0))),
    ("shift-width", k.shifted, "<<", lambda q: q(ints(1), ints(32), ints(0))),
    ("float-to-int", k.to_integer, ".to", lambda q: q(torch.tensor([3e9]), ints(0))),
    ("float-to-int", k.to_integer, ".to", lambda q: q(torch.tensor([NAN]), ints(0))),
    ("fp8-saturation", k.convert, ".to", lambda q: q(
        torch.tensor([500.0, 1.0]), torch.zeros(2, dtype=torch.float8_e4m3fn), ROUNDING=None, BLOCK=2)),
    ("false-multiple-of", k.hinted, "multiple_of", lambda q: q(
        torch.zeros(80), torch.zeros(16), 8, MULTIPLE=16, RUN=16, BLOCK=16)),
    ("misaligned", k.read_wider, "tl.load", lambda q: q(
        torch.zeros(8, dtype=torch.int16), torch.zeros(1, dtype=torch.int64))),
    ("false-assumption", k.assumed, "tl.assume", lambda q: q(ints(0), 0)),
    ("false-assertion", k.asserted, "tl.device_assert", lambda q: q(torch.zeros(1))),
    ("descriptor-alignment", k.described_rows, "tl.make_tensor_descriptor", lambda q: q(
        torch.zeros(16, 17), torch.zeros(16, 16), 17, BLOCK=16)),
    ("reduce-order", k.place_of_maximum, "tl.argmax", lambda q: q(
        torch.tensor([1.0, 5.0, 5.0, 0.0]), ints(0), LEFT=False, BLOCK=4)),
    ("reduce-order", k.scanned, "tl.associative_scan", lambda q: q(
        torch.arange(8.0), torch.zeros(8), BLOCK=8)),
    ("reduce-order", k.reduced, "tl.reduce", lambda q: q(
        torch.arange(8.0), torch.zeros(1), COMBINE=k.take_difference, BLOCK=8)),
    ("reduce-order", k.place_by_hand, "tl.reduce", lambda q: q(
        torch.tensor([5.0, 1.0, 5.0, 0.0]), ints(0), BLOCK=4)),
    ("gather-index", k.picked, "tl.gather", lambda q: q(
        torch.ones(4), ints(0, 4, -1, 3), torch.zeros(4), FALLBACK=True, BLOCK=4)),
    ("histogram-range", k.binned, "tl.histogram", lambda q: q(ints(0, 4, 3, 1), ints(0, 0, 0, 0), BINS=4, BLOCK=4)),
    ("histogram-range", k.binned, "tl.histogram", lambda q: q(ints(0, -1, 3, 1), ints(0, 0, 0, 0), BINS=4, BLOCK=4)),
    ("nan-minmax", k.maximum, "tl.max", lambda q: q(torch.tensor([1.0, NAN]), torch.zeros(1), BLOCK=2)),
    ("bf16-atomic", k.count, "atomic_add", lambda q: q(ints(0, 1), torch.zeros(2, dtype=torch.bfloat16), BLOCK=2)),
    ("dot-minimum", k.product, "tl.dot", lambda q: q(
        torch.zeros(16, 8).half(), torch.zeros(8, 16).half(), torch.zeros(16, 16), M=16, N=16, K=8)),
    ("dot-precision", k.product, "tl.dot", lambda q: q(
        torch.zeros(16, 16), torch.zeros(16, 16), torch.zeros(16, 16), M=16, N=16, K=16)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "kernel", "text", "call"), FAULTY, ids=[f"{c}-{q.fn.__name__}" for c, q, *_ in FAULTY]
)
def test_a_warning_has_its_code_and_line(code: str, kernel: Any, text: str, call: Callable[[Any], Any]) -> None:
    session = run(lambda: call(kernel[(1,)]))
    only(session.warnings, code, line_of(kernel, text))
    assert session.problems == []


RIGHT: list[tuple[Any, Callable[[Any], Any]]] = [
    (k.overflowing, lambda q: q(torch.zeros(1, dtype=torch.int64), 40_000)),
    (k.divided, lambda q: q(ints(-8), ints(2), ints(0))),
    (k.remainder, lambda q: q(torch.tensor([7.0]), torch.tensor([2.0]), torch.zeros(1))),
    (k.shifted, lambda q: q(ints(1), ints(31), ints(0))),
    (k.to_integer, lambda q: q(torch.tensor([2147483520.0]), ints(0))),
    (k.hinted, lambda q: q(torch.zeros(80), torch.zeros(16), 32, MULTIPLE=16, RUN=16, BLOCK=16)),
    (k.asserted, lambda q: q(torch.ones(1))),
    (k.described_rows, lambda q: q(torch.zeros(16, 20), torch.zeros(16, 16), 20, BLOCK=16)),
    (k.place_of_maximum, lambda q: q(torch.tensor([1.0, 5.0, 5.0, 0.0]), ints(0), LEFT=True, BLOCK=4)),
    (k.place_of_maximum, lambda q: q(torch.tensor([1.0, 5.0, 2.0, 0.0]), ints(0), LEFT=False, BLOCK=4)),
    (k.place_by_hand, lambda q: q(torch.tensor([1.0, 5.0, 2.0, 0.0]), ints(0), BLOCK=4)),
    (k.picked, lambda q: q(torch.ones(4), ints(3, 0, 0, 2), torch.zeros(4), FALLBACK=False, BLOCK=4)),
    (k.binned, lambda q: q(ints(0, 3, 3, 1), ints(0, 0, 0, 0), BINS=4, BLOCK=4)),
    (k.reduced, lambda q: q(torch.randn(64), torch.zeros(1), COMBINE=k.plus, BLOCK=64)),
    (k.gathered, lambda q: q(ints(0, 1, 2, 3), torch.zeros(20_000), torch.zeros(4), 3, 9_000, BLOCK=4)),
    (k.product, lambda q: q(
        torch.zeros(16, 16).half(), torch.zeros(16, 16).half(), torch.zeros(16, 16), M=16, N=16, K=16)),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "call"), RIGHT, ids=[q.fn.__name__ for q, _ in RIGHT])
@pytest.mark.parametrize("poison", [0, 1])
def test_a_right_kernel_raises_no_alarm(kernel: Any, call: Callable[[Any], Any], poison: int) -> None:
    session = run(lambda: call(kernel[(1,)]), order=poison, poison=poison)
    assert session.problems == []
    assert session.warnings == []


def test_a_gather_from_no_lane_is_undefined() -> None:
    """The lane follows the poison, and is told where it is stored."""
    made = []
    for poison in (0, 1):
        out = torch.zeros(4)
        with opened(TARGET) as session:
            session.vary(0, poison)
            k.picked[(1,)](torch.ones(4), ints(0, 4, -1, 3), out, FALLBACK=False, BLOCK=4)
            (found,) = session.undefined()
        made.append(out)
    assert made[0].eq(1).tolist() == [True, False, False, True]
    assert made[0].ne(made[1]).any()
    assert found.line.endswith(line_of(k.picked, "tl.store"))


def test_a_histogram_counts_by_the_low_bits() -> None:
    """As a compiler does that looks at these alone."""
    out = ints(0, 0, 0, 0)
    run(lambda: k.binned[(1,)](ints(1, 5, -1, 3), out, BINS=4, BLOCK=4))
    assert out.tolist() == [0, 2, 0, 2]


def test_a_division_by_a_power_of_2_is_exact_on_every_target() -> None:
    with opened(TARGET) as session:
        session.vary_arithmetic("approximate-quotient")
        k.quotient_by_power[(1,)](torch.full((16,), 49.0), torch.empty(16), BLOCK=16)
    assert session.varied() is None


def test_a_hint_of_runs_is_held_against_the_values() -> None:
    session = run(lambda: k.hinted[(1,)](torch.zeros(80), torch.zeros(16), 1, MULTIPLE=1, RUN=16, BLOCK=16))
    assert session.warnings == []  # a run may begin anywhere; its multiple says where
    strided = run(lambda: k.hinted_strided[(1,)](torch.zeros(80), torch.zeros(16), RUN=4, BLOCK=16))
    only(strided.warnings, "false-max-contiguous", line_of(k.hinted_strided, "max_contiguous"))


def test_a_warning_comes_once_for_all_programs() -> None:
    session = run(lambda: k.divided[(5,)](ints(-7), ints(2), ints(0)))
    assert len(session.warnings) == 1
