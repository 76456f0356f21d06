"""The ways in which a file shows that an execution goes wrong: the Python that each of them adds.

Triton's own interpreter computes values and judges nothing. What only a checked interpreter notices is shown in another
way: a page that may not be touched beside each tensor, programs run last to first, other values where none is defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """One way of showing a failure: what it calls itself, and the Python that does it."""

    name: str
    words: str  # what running the file shows
    helpers: str  # definitions before the kernels
    main: str
    imports: tuple[str, ...] = ()
    unwritten: str = "unwritten({})"  # around an allocation
    given: str = "{}"  # around an input


COMPARE = '''
def main():
    """Compare with what the operation should give, and print the first element that is wrong."""
    failed = False
    for number, (got, want, allowed) in enumerate(zip(run(*inputs()), EXPECTED, ALLOWED)):
        got = got.cpu()
        if got.shape != want.shape:
            print(f"output {number}: shape {tuple(got.shape)}, expected {tuple(want.shape)}")
            failed = True
            continue
        wrong = got != want
        if got.dtype.is_floating_point:
            close = (got.float().double() if got.itemsize == 1 else got.double()).sub(want).abs() <= allowed
            wrong = wrong & ~close & ~(got.isnan() & want.isnan())
        if bool(wrong.any()):
            at = tuple(int(i) for i in wrong.nonzero()[0])
            print(f"output {number}{list(at)}: got {got[at].item()}, expected {want[at].item()}", end="; ")
            print(f"{int(wrong.sum())} of {wrong.numel()} elements are wrong")
            failed = True
    print("wrong values" if failed else "all values are right")
    return int(failed)
'''
UNWRITTEN = '''
def unwritten(tensor):
    """Fill an allocation with what shows if it is never written."""
    if tensor.dtype.is_floating_point:
        return tensor.fill_(float("nan"))
    return tensor.fill_(1 if tensor.dtype is torch.bool else torch.iinfo(tensor.dtype).max)
'''
CHANGED = '''
def main():
    """Look at the inputs after the call: an operation leaves them as they are."""
    given, kept = inputs(), inputs()
    run(*given)
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(given, kept)) if isinstance(a, torch.Tensor)]
    written = [i for i, a, b in pairs if not bool(((a == b) | (a != a) & (b != b)).all())]
    print(f"inputs written: {written}" if written else "every input is as it was")
    return int(bool(written))
'''
GUARDED = '''
AFTER = True  # whether the page that may not be touched lies after each tensor, or before it
held = []


def guarded(tensor):
    """Copy `tensor` to where its last byte, or its first, borders on a page that may not be touched."""
    page = mmap.PAGESIZE
    extent = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1 if tensor.numel() else 0
    size = extent * tensor.element_size()
    pages = max(1, -(-size // page))
    area = mmap.mmap(-1, (pages + 2) * page)
    held.append(area)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for edge in (start, start + (pages + 1) * page):
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(edge), ctypes.c_size_t(page), 0)
    if not extent:
        return tensor
    offset = page + (pages * page - size if AFTER else 0)
    flat = torch.frombuffer(area, dtype=tensor.dtype, offset=offset, count=extent)
    return flat.as_strided(tensor.shape, tensor.stride()).copy_(tensor)
'''
GUARDED_MAIN = '''
def main():
    """Run in processes of their own: one that touches memory which is not its tensors' is ended by a signal."""
    global AFTER
    failed = False
    for AFTER in (True, False):
        child = os.fork()
        if child == 0:
            run(*inputs())
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        side = "after" if AFTER else "before"
        if code < 0:
            print(f"memory {side} a tensor is touched: the process is ended by {signal.Signals(-code).name}")
            failed = True
    if not failed:
        print("no memory beside a tensor is touched")
    return int(failed)
'''
ORDER = '''
def run_backwards():
    """Let programs run last to first: a correct kernel cannot tell."""
    from triton.runtime.interpreter import interpreter_builder as builder

    plain = builder.set_grid_idx

    def set_grid_idx(x, y, z):
        nx, ny, nz = builder.grid_dim
        plain(nx - 1 - x, ny - 1 - y, nz - 1 - z)

    builder.set_grid_idx = set_grid_idx
'''
ORDER_MAIN = '''
def main():
    """Run twice, with programs first to last and last to first, and print where the results differ."""
    first = [t.clone() for t in run(*inputs())]
    run_backwards()
    return differences(first, run(*inputs()), "in one order of programs", "in the other")
'''
DIFFERENCES = '''
def differences(first, second, one, other):
    """Print the first element in which two results differ."""
    for number, (a, b) in enumerate(zip(first, second)):
        differ = (a != b) & ~((a != a) & (b != b))
        if bool(differ.any()):
            at = tuple(int(i) for i in differ.nonzero()[0])
            print(f"output {number}{list(at)} is {a[at].item()} {one} and {b[at].item()} {other}")
            return 1
    print(f"the results are the same {one} and {other}")
    return 0
'''
UNDEFINED = '''
FILL = 1  # what lanes hold that no load fills, and memory that nobody wrote


def unwritten(tensor):
    """Fill an allocation as if memory held that before."""
    return tensor.fill_(FILL)


def fill_masked_lanes():
    """Give masked-off lanes of a load without `other` the value of FILL: a GPU leaves there what it likes."""
    from triton.runtime import interpreter

    plain = interpreter.InterpreterBuilder.create_masked_load

    def create_masked_load(self, ptrs, mask, other, *rest):
        if other is None:
            kind = ptrs.get_element_ty()
            lanes = numpy.full_like(ptrs.data, FILL, dtype=interpreter._get_np_dtype(kind))
            other = interpreter.TensorHandle(lanes, kind)
        return plain(self, ptrs, mask, other, *rest)

    interpreter.InterpreterBuilder.create_masked_load = create_masked_load
'''
UNDEFINED_MAIN = '''
def main():
    """Run twice, with other values where none is defined, and print where the results differ."""
    global FILL
    fill_masked_lanes()
    first = [t.clone() for t in run(*inputs())]
    FILL = 100
    return differences(first, run(*inputs()), "where undefined lanes hold 1", "where they hold 100")
'''
RAISES_MAIN = '''
def main():
    """Print what the call raises."""
    try:
        for tensor in run(*inputs()):
            tensor.cpu()  # waits for a device
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    print("nothing is raised")
    return 0
'''
HANGS_MAIN = '''
def main():
    """Call; it does not come back."""
    run(*inputs())
    print("it comes back")
    return 0
'''

WAYS: Mapping[str, Way] = {
    w.name: w
    for w in (
        Way("values", "wrong values beside the right ones", UNWRITTEN, COMPARE),
        Way("changed", "an input that is written", UNWRITTEN, CHANGED),
        Way("memory", "a process that is ended by a signal, since it touches a page beside a tensor", GUARDED,
            GUARDED_MAIN, ("import ctypes", "import mmap", "import signal"), "guarded({})", "guarded({})"),
        Way("order", "results that depend on the order in which programs run", UNWRITTEN + ORDER + DIFFERENCES,
            ORDER_MAIN),
        Way("undefined", "results that depend on values which nobody defines", UNDEFINED + DIFFERENCES,
            UNDEFINED_MAIN, ("import numpy",)),
        Way("raises", "what the call raises", UNWRITTEN, RAISES_MAIN),
        Way("hangs", "a call that does not come back", UNWRITTEN, HANGS_MAIN),
    )
}  # fmt: skip
