"""Launches of a kernel that Inductor generated, counted where a device is: by a launcher in the place of its own.

Inductor launches some ten kernels in the time that Python takes for a few calls of functions that take any arguments.
So what counts is made of a text, with as many parameters as the kernel has arguments, and compares their sizes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portability.record.entries import Generated
    from portability.record.recorder import Recorder

FAST = "_cached_launcher"  # of a kernel: what newer versions of torch launch by, once it is settled
TEXT = """
def make(launcher, changed, {lasts}):
    times = 0

    def counted({given}*, stream{more}):
        nonlocal times, {lasts}
        if {same}:
            times += 1
        else:
            {lasts} = {sizes}
            changed(({given}))
        return launcher({given}stream=stream{more})

    def taken():
        nonlocal times
        found, times = times, 0
        return found

    return counted, taken
"""


class Counting:
    """A launcher in the place of the one that Inductor settled on for a kernel: it counts, and launches by that."""

    def __init__(
        self, recorder: Recorder, kernel: Any, plain: Callable[..., Any], args: Sequence[Any], entry: Generated
    ) -> None:
        """`plain` is the `run` of the kernel's class, `entry` counts the launch of `args` that has just been made."""
        self.recorder, self.kernel, self.entry = recorder, kernel, entry
        self.fast = getattr(kernel, FAST, None) is not None
        self.launcher = getattr(kernel, FAST) if self.fast else kernel.launchers[0]
        self.counted, self._taken = counted(self.launcher, args, self._changed, self.fast)
        self._put(self.launcher, self.counted)
        kernel.run = MethodType(plain, kernel)  # the launcher sees every launch: no need to see them twice

    def settle(self) -> None:
        """Count what was launched until now."""
        self.entry.times += self._taken()

    def detach(self) -> None:
        """Leave the kernel as it was."""
        self.kernel.__dict__.pop("run", None)
        self._put(self.counted, self.launcher)

    def _changed(self, args: tuple[Any, ...]) -> None:
        self.settle()
        self.entry.close()
        self.entry = self.recorder.note_generated(self.kernel, args)

    def _put(self, old: Any, new: Any) -> None:
        if not self.fast:
            self.kernel.launchers = [new if launcher is old else launcher for launcher in self.kernel.launchers]
        elif getattr(self.kernel, FAST) is old:
            setattr(self.kernel, FAST, new)


def counted(
    launcher: Callable[..., Any], args: Sequence[Any], changed: Callable[[tuple[Any, ...]], None], fast: bool
) -> tuple[Callable[..., Any], Callable[[], int]]:
    """Return `launcher`, counting launches of the sizes in `args`, and what takes the count; others are `changed`.

    A launcher that is not `fast` may be given named arguments too.
    """
    names = [f"a{i}" for i in range(len(args))]
    sizes = [name for name, a in zip(names, args, strict=True) if type(a) is int]
    text = TEXT.format(
        given="".join(f"{n}, " for n in names),
        lasts=", ".join(f"last_{n}" for n in sizes) or "_",
        sizes=", ".join(sizes) or "_",
        same=" and ".join(f"{n} == last_{n}" for n in sizes) or "True",
        more="" if fast else ", **more",
    )
    scope: dict[str, Any] = {}
    exec(compile(text, "<counted>", "exec"), scope)
    last: list[Any] = [a for a in args if type(a) is int]
    made, taken = scope["make"](launcher, changed, *(last or [None]))
    made.__dict__.update(launcher.__dict__)  # its configuration, registers, spills
    return made, taken
