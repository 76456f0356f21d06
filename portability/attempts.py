"""Executions of one cell that a correct kernel cannot tell apart, and what their differences mean."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portability.backend import Backend, Launch, Problem, Session
from portability.kernel import Blocks, Inputs, KernelCase, Sample
from portability.model import Accuracy, Finding, Outcome, Timing

if TYPE_CHECKING:
    from portability.memory import Memory

NAN = "nan-minmax"  # the interpreter's warning


@dataclass
class Progress:
    """Where a cell is, and what is known of it already: an exception loses nothing."""

    stage: str = "open"
    session: Session | None = None
    accuracy: Accuracy | None = None
    timing: Timing | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    device: str = ""


def is_moved(case: KernelCase, sample: Sample) -> bool:
    """Return whether a device also gets the sample's inputs one element further on: once a kernel and dtype."""
    return sample is next((s for s in case.samples if s.quick), case.samples[0])


def moved(inputs: Inputs) -> Inputs:
    """Return copies of the tensors where they are, one element further on."""
    from portability.memory import Memory

    return _placed(Memory(0, 0), inputs, "", 1)


def _placed(memory: Memory, inputs: Inputs, device: str, moved: int) -> Inputs:
    """Return copies of the tensors on `device`, or where they are, `moved` elements further on in `memory`."""
    import torch

    return tuple(
        memory.place(f"input {i}", x, device or str(x.device), moved) if isinstance(x, torch.Tensor) else x
        for i, x in enumerate(inputs)
    )


@dataclass
class Attempts:
    """Executions of one cell that a correct kernel cannot tell apart."""

    progress: Progress
    case: KernelCase
    session: Session
    backend: Backend
    device: str
    inputs: Inputs
    blocks: Blocks
    placed: Inputs = ()
    made: tuple[Any, ...] = ()

    def run(self, order: int, poison: int, moved: int = 0, elsewhere: bool = False) -> tuple[Any, ...]:
        """Return the outputs of one execution, and note what it touched that was not its own.

        `moved` is how many elements further on the inputs lie. With `elsewhere`, another stream is the current one, and
        the inputs get their values in it.
        """
        import torch

        from portability.compare import outputs_of
        from portability.memory import Memory, unchanged

        memory = Memory(self.backend.guard, poison)
        self.placed = _placed(memory, self.inputs, self.device, moved)
        self.session.vary(order, poison)
        with self._late() if elsewhere else contextlib.nullcontext(), memory:
            made = outputs_of(self.case.operator(*self.placed, blocks=self.blocks))
        self.session.synchronize()
        self.made = made
        self._note(Outcome.OUT_OF_BOUNDS, "guard-zone", [str(b) for b in memory.breaches()])
        written = [
            f"input {i} was written by the operator"
            for i, (x, p) in enumerate(zip(self.inputs, self.placed, strict=True))
            if isinstance(x, torch.Tensor) and i not in self.case.mutates and not unchanged(x, p)
        ]
        self._note(Outcome.WRONG, "input-changed", written)
        self.progress.problems += [p for p in self.session.problems if p not in self.progress.problems]
        memory.release()
        return made

    @contextlib.contextmanager
    def _late(self) -> Iterator[None]:
        """Make another stream the current one; only in it, and behind other work, the inputs get their values."""
        import torch

        from portability.memory import fill

        tensors = [x for x in self.placed if isinstance(x, torch.Tensor)]
        values = [x.clone() for x in tensors]
        for x in tensors:
            fill(x)
        self.session.synchronize()
        with self.session.elsewhere():
            for x, v in zip(tensors, values, strict=True):
                fill(x, v)
            yield

    def judge_placement(self, first: Sequence[Any], expected: Sequence[Any], moved: bool) -> None:
        """On a device: run in another stream and, if asked, with every input one element further on.

        An operator may refuse a misaligned input by a `ValueError`. A probe, which checks nothing, stays where it
        makes a descriptor: that takes addresses divisible by 16. The launches are not recorded: they are no cell's.
        """
        if not self.session.streams or self.progress.problems:
            return
        from portability.compare import differ

        recorded = len(self.session.launches)
        made = self.run(order=0, poison=0, elsewhere=True)
        if not _same(first, made) and (self.case.deterministic or not _right(expected, made)):
            early = f"{_place(first, made)} differs in another stream: something is done outside of torch's current one"
            self._note(Outcome.RACE, "second-stream", [early])
        if moved and not (self.case.group and _by_descriptor(self.session.launches[:recorded])):
            with contextlib.suppress(ValueError):
                made = self.run(order=0, poison=0, moved=1)
                wrong = (differ(e, o, f"output {i}")[0] for i, (e, o) in enumerate(zip(expected, made, strict=True)))
                found = [f"{message}, with inputs one element further on" for message in wrong if message]
                self._note(Outcome.WRONG, "misaligned-input", found)
        del self.session.launches[recorded:]

    def judge_repetition(self, first: Sequence[Any], expected: Sequence[Any]) -> None:
        """Run with other poison and in another order; a difference that follows the poison is an undefined value."""

        def right(made: Sequence[Any]) -> bool:
            return _right(expected, made)

        def told_apart(second: Sequence[Any]) -> bool:
            return not (_same(first, second) or (not self.case.deterministic and right(first) and right(second)))

        first = [o.clone() for o in first]
        second = [o.clone() for o in self.run(order=1, poison=1)]
        if not told_apart(second) and self.session.entangled:  # what reversing leaves, shuffling may not
            second = [o.clone() for o in self.run(order=2, poison=1)]
        if not told_apart(second):
            self._judge_nan(first)
            return
        third = self.run(order=0, poison=1)
        if not _same(first, third) and (self.session.ordered or _same(second, third)):
            follows = f"{_place(first, third)} follows what memory held that no one wrote"
            self._note(Outcome.UNDEFINED_VALUE, "undefined-value", [follows])
            self.progress.problems += self.session.undefined()
        elif right(second) and right(third):
            if self.case.deterministic:
                self._note(
                    Outcome.NONDETERMINISTIC,
                    "nondeterministic",
                    [f"{_place(first, second)} differs in bits from run to run"],
                )
        else:
            self._note(Outcome.RACE, "race", [f"{_place(first, second)} depends on the order in which programs run"])
            self.session.trace = True  # once more, to name the two programs
            self.run(order=0, poison=0)
            self.session.trace = False

    def _judge_nan(self, first: Sequence[Any]) -> None:
        """Take back warnings of NaN in minima and maxima where the outputs are the same if NaN goes through."""
        if not any(w.code == NAN for w in self.session.warnings):
            return
        self.session.passes_nan = True
        made = self.run(order=0, poison=0)
        self.session.passes_nan = False
        if all(_alike(x, y) for x, y in zip(first, made, strict=True)):
            self.session.warnings[:] = [w for w in self.session.warnings if w.code != NAN]

    def _note(self, outcome: Outcome, code: str, messages: Sequence[str]) -> None:
        for message in messages:
            problem = Problem(outcome, code, message)
            if problem not in self.progress.problems:
                self.progress.problems.append(problem)


def _by_descriptor(launches: Sequence[Launch]) -> bool:
    """Whether a kernel among `launches` has a descriptor, made on the host or in it."""
    return any("tt.tensordesc" in str(x.compiled.asm.get("ttir", "")) for x in launches if x.compiled is not None)


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two executions gave the same bits."""
    from portability.memory import unchanged

    return all(unchanged(x, y) for x, y in zip(a, b, strict=True))


def _alike(one: Any, other: Any) -> bool:
    """Whether two tensors hold the same values, a NaN being as good as another."""
    a, b = ((t.float() if t.itemsize == 1 else t) if t.is_floating_point() else t for t in (one, other))
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _right(expected: Sequence[Any], made: Sequence[Any]) -> bool:
    """Whether an execution gave what is expected, within tolerance."""
    from portability.compare import differ

    return not any(differ(e, o, "")[0] for e, o in zip(expected, made, strict=True))


def _place(a: Sequence[Any], b: Sequence[Any]) -> str:
    """Name the first element in which two executions differ."""
    import torch

    from portability.memory import bits

    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if not x.numel() or not x.ndim:
            continue
        differing = (bits(x) != bits(y)).reshape(-1, x.element_size()).any(-1)
        if bool(differing.any()):
            at = torch.unravel_index(torch.nonzero(differing)[0, 0], x.shape)
            return f"output {i}[{', '.join(str(int(n)) for n in at)}]"
    return "an output"
