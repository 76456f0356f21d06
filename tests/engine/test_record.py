"""What is recorded of a program's launches, without a device."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import triton
import triton.language as tl

from portability.commands.record import command_of
from portability.record import plugin
from portability.record.arguments import UnknownArgumentError, decode, encode
from portability.record.counting import Counting
from portability.record.model import Call, Grid, Recording, RecordingError, merge, read, write
from portability.record.session import Session
from tests.engine import recorded_kernels as kernels
from tests.engine.conftest import Project


def recorded(program: Callable[[], Any], target: str = "cuda:90") -> Recording:
    """Return what a program launches into nothing."""
    session = Session(target)
    session.start()
    try:
        program()
    finally:
        session.stop()
    return session.recorder.recording()


def one(program: Callable[[], Any], target: str = "cuda:90") -> Call:
    """Return the one launch of a program."""
    (call,) = recorded(program, target).launches
    return call


def scaled(n: int = 100, dtype: torch.dtype = torch.float16, **options: Any) -> Any:
    """Launch `scale` on tensors of the device."""
    x = torch.randn(n, device="cuda", dtype=dtype)
    return kernels.scale[lambda meta: (-(-n // meta["BLOCK"]),)](x, torch.empty_like(x), n, BLOCK=64, **options)


# ------------------------------------------------------------------------------------------------ one launch


def test_a_launch_is_recorded_with_what_compiles_it() -> None:
    """Types, constants, specialisation and the options as they were written."""
    call = one(lambda: scaled(96, num_warps=8))
    assert call.signature == {"x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32", "BLOCK": "constexpr"}
    assert (call.constants, call.options) == ({"BLOCK": "64"}, {"num_warps": 8})
    assert all("tt.divisibility" in call.attributes[n] for n in ("x_ptr", "y_ptr", "n"))


def test_a_launch_is_recorded_with_where_its_kernel_is() -> None:
    """The file, and the line of `def`."""
    call = one(scaled)
    assert Path(call.file).read_text().splitlines()[call.line - 1].startswith("def scale(")


def test_launches_that_compile_alike_are_one_with_several_grids() -> None:
    """One binary, two grids, three launches."""
    call = one(lambda: [scaled(100), scaled(200), scaled(100)])
    assert {(g.size, g.times) for g in call.grids} == {((2,), 2), ((4,), 1)}


def test_a_launch_is_counted_for_the_test_that_made_it() -> None:
    """Also where it is like the last one of the test before."""
    session = Session("cuda:90")
    session.start()
    try:
        for test, times in (("a", 2), ("b", 3), ("", 1)):
            session.recorder.test = test
            for _ in range(times):
                scaled()
    finally:
        session.stop()
    made = session.recorder.recording()
    (call,) = made.launches
    (grid,) = call.grids
    assert (grid.times, [made.tests[i] for i in grid.tests]) == (6, ["a", "b"])
    (entry,) = session.recorder.entries.values()
    assert sorted(entry.counts.items()) == [(((2,), ""), 1), (((2,), "a"), 2), (((2,), "b"), 3)]


def test_the_smallest_launch_gives_the_arguments() -> None:
    """It is the easiest to run again."""
    call = one(lambda: [scaled(200), scaled(100)])
    assert call.arguments["n"] == 100


def test_another_specialisation_is_another_launch() -> None:
    """A size that is a multiple of 16 compiles to another binary."""
    assert len(recorded(lambda: [scaled(100), scaled(96)]).launches) == 2


def test_tensors_of_one_storage_are_told_from_others() -> None:
    """A launch in place is launched again in place."""
    x = torch.randn(64)
    call = one(lambda: kernels.scale[(1,)](x, x, 64, BLOCK=64))
    assert call.arguments["x_ptr"]["tensor"]["storage"] == call.arguments["y_ptr"]["tensor"]["storage"]


def test_every_configuration_is_recorded_with_its_heuristics() -> None:
    """They belong to one launch, and what a heuristic makes of each is exact."""
    launches = recorded(lambda: kernels.tuned[(1,)](torch.empty(128, device="cuda"), 128)).launches
    assert {(c.arguments["BLOCK"], c.arguments["EVEN"]) for c in launches} == {(128, True), (256, False)}
    assert len({c.tuning for c in launches}) == 1


def test_an_unknown_option_is_recorded_as_the_error_that_it_is() -> None:
    """The program sees Triton's own error."""
    session = Session("cuda:90")
    session.start()
    try:
        with pytest.raises(KeyError, match="waves"):
            scaled(waves=3)
    finally:
        session.stop()
    (call,) = session.recorder.recording().launches
    assert "waves" in call.error
    assert call.options == {"waves": 3}


def test_the_test_that_launches_is_named() -> None:
    """Launches of two tests are told apart."""
    session = Session("cuda:90")
    session.start()
    for name in ("a.py::test_one", "a.py::test_two"):
        session.recorder.test = name
        scaled()
    session.stop()
    made = session.recorder.recording()
    assert [made.tests[i] for i in made.launches[0].grids[0].tests] == ["a.py::test_one", "a.py::test_two"]


# ------------------------------------------------------------------------------------------------- into nothing


def test_nothing_is_compiled_until_a_binary_is_asked_for() -> None:
    """A program may ask for the assembly of what it launched."""
    texts: list[str] = []
    held: list[Any] = []

    def program() -> None:
        held.append(scaled())
        assert held[0]._made is None
        texts.append(held[0].asm["ttir"])

    recorded(program)
    assert "tt.store" in texts[0]


def test_the_device_answers_as_the_target() -> None:
    """Of AMD's, torch says that it is built for HIP."""
    seen: list[Any] = []

    def program() -> None:
        x = torch.empty(3, device="cuda")
        seen.extend((x.device.type, x.is_cuda, torch.version.hip is not None, torch.cuda.get_device_capability()))

    recorded(program, "hip:gfx942")
    assert seen == ["cuda", True, True, (9, 4)]


def test_the_device_answers_within_a_backward_pass_and_a_custom_operator() -> None:
    """Where a mode of torch would be off."""
    seen: list[Any] = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(_: Any, *gradients: torch.Tensor) -> torch.Tensor:
            seen.append(gradients[0].is_cuda and torch.empty(1, device="cuda").is_cuda)
            return gradients[0] * 2

    def program() -> None:
        Doubled.apply(torch.ones(2, device="cuda", requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]

    recorded(program)
    assert seen == [True]


def test_torch_is_left_as_it_was() -> None:
    """Also after a program that raised."""
    before = {**vars(torch)}, {**vars(torch.Tensor)}, {**vars(torch.cuda)}
    with pytest.raises(ZeroDivisionError):
        recorded(lambda: 1 // 0)
    after = vars(torch), vars(torch.Tensor), vars(torch.cuda)
    changed = [n for old, new in zip(before, after, strict=True) for n in old if old[n] is not new.get(n)]
    assert changed == []
    assert torch.empty(1).device.type == "cpu"


def test_comparisons_hold_so_that_a_test_goes_on() -> None:
    """Values were never computed: a test that stops at its first comparison launches no more."""
    recorded(lambda: torch.testing.assert_close(torch.ones(2), torch.zeros(2)))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))


def test_what_programs_do_with_a_device_beside_launching_goes_on() -> None:
    """Benchmarks, graphs, streams, and moving to a device by its number."""
    seen: list[Any] = []

    def program() -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.cuda.stream(torch.cuda.current_stream()):
            scaled()
        graph.replay()
        seen.append(triton.testing.do_bench(scaled))
        seen.append(torch.ones(3).to(0).device.type)

    assert recorded(program).launches[0].launches == 2
    assert seen == [1.0, "cuda"]


def test_a_target_that_is_nothing_is_refused_with_the_choices() -> None:
    """The message names them."""
    with pytest.raises(ValueError, match=r"'cuda:9'.*cuda:90.*hip:gfx942"):
        Session("cuda:9").start()


# ----------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "value",
    [
        None, True, 7, 1.5, "gelu", float("-inf"), (1, (2, "a")), [1, 2], torch.float16, tl.bfloat16, kernels.Kind.SUM,
        kernels.tripled, kernels.Pair(1, 2),
    ],
    ids=str,
)  # fmt: skip
def test_an_argument_comes_back_from_json(value: Any) -> None:
    """As the value that it was, through a file."""
    made = decode("x", json.loads(json.dumps(encode(value))))
    assert made == value
    assert type(made) is type(value)


def test_a_constant_comes_back_from_json() -> None:
    """Triton compares constants by their own rules."""
    assert decode("x", json.loads(json.dumps(encode(tl.constexpr(4))))).value == 4


def test_a_tensor_comes_back_as_a_pointer_without_memory() -> None:
    """Alignment, dtype and reach are what compiling asks for."""
    whole = torch.empty(100, dtype=torch.float16)
    made = decode("x", encode(whole[1:]))
    assert (made.data_ptr() % 16, made.dtype) == (whole[1:].data_ptr() % 16, torch.float16)
    assert made.ptr_range() == 200


def test_an_argument_without_a_stand_in_is_named() -> None:
    """A kernel that was given anything else cannot be launched again, and the message says by what."""
    with pytest.raises(UnknownArgumentError, match=r"'x' was builtins\.object"):
        decode("x", encode(object()))


# ------------------------------------------------------------------------------------------------------- files


def call(**changed: Any) -> Call:
    """Return a launch that no program made."""
    return dataclasses.replace(Call("k", "m", "/m.py", 1, "0", grids=(Grid((4,), 2, (0,)),)), **changed)


def test_recordings_of_two_processes_are_one() -> None:
    """Launches that compile alike are counted together, each test under its name."""
    both = merge([Recording("cuda:90", tests=(name,), launches=(call(),)) for name in ("one", "two")])
    assert both.tests == ("one", "two")
    assert both.launches[0].grids == (Grid((4,), 4, (0, 1)),)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A launch a line."""
    made = Recording("cuda:90", program=("a.py",), launches=(call(), call(kernel="l")))
    write(tmp_path / "l.json", made)
    assert read(tmp_path / "l.json") == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("{}", "portability record -o l.json"),
        ('{"format": "portability-launches", "version": 9}', "version 9"),
        ('{"format": "portability-launches", "version": 1, "target": 3}', "Recording.target: str is needed"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file and what is wrong."""
    path = tmp_path / "l.json"
    path.write_text(text)
    with pytest.raises(RecordingError, match=r"l\.json") as refused:
        read(path)
    assert said in str(refused.value)


# --------------------------------------------------------------------------------------------------- programs


def test_pytest_is_told_to_record(tmp_path: Path) -> None:
    """By any of its names."""
    for words in (["pytest", "-x"], ["python", "-m", "pytest", "-x"]):
        command = command_of(words, tmp_path / "l.json", "cuda:80")
        assert command[1:3] == ["-m", "pytest"]
        assert command[-1] == "-x"
        assert "--portability-record" in command


def test_recordings_of_one_test_suite_for_two_targets_are_of_one_program() -> None:
    """What asks for the recording is none of pytest's arguments."""
    asked = ["-x", "--portability-record", "a.json", "--portability-record-target=hip:gfx942", "-k", "t"]
    assert list(plugin._others(asked)) == ["-x", "-k", "t"]


@pytest.mark.parametrize(("words", "said"), [([], "no program"), (["no_such.py"], "no such Python file")])
def test_what_is_no_program_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    """The message names the choices."""
    with pytest.raises(ValueError, match=said):
        command_of(words, tmp_path / "l.json", "")


PROGRAM = """\
import sys
import torch
from tests.engine.recorded_kernels import scale
x = torch.ones(64, device="cuda")
scale[(1,)](x, x, 64, BLOCK=64)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_program_is_recorded_and_ends_as_it_would(tmp_path: Path) -> None:
    """With its own arguments and its own exit code."""
    project = Project(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = project.portability("record", "-o", "l.json", "--", "program.py", "3")
    assert done.returncode == 3, done.stderr
    assert [c.kernel for c in read(tmp_path / "l.json").launches] == ["scale"]


ENDED = """\
import os
import torch
from tests.engine.recorded_kernels import scale

def test_it():
    x = torch.ones(64, device="cuda")
    scale[(1,)](x, x, 64, BLOCK=64)
    os.abort()

if __name__ == "__main__":
    test_it()
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [["program.py"], ["pytest", "-p", "no:faulthandler", "program.py"]])
def test_what_a_program_launched_until_a_signal_ended_it_is_recorded(tmp_path: Path, program: list[str]) -> None:
    """It had no time to write anything; the signal is named, and the exit code is a shell's."""
    project = Project(tmp_path)
    (tmp_path / "program.py").write_text(ENDED)
    done = project.portability("record", "-o", "l.json", "--", *program)
    assert done.returncode == 128 + 6, done.stderr
    assert "was ended by SIGABRT; what it launched until then is recorded" in done.stderr
    assert [c.kernel for c in read(tmp_path / "l.json").launches] == ["scale"]
    assert not list(tmp_path.glob("*.part"))


TESTS = """\
import pytest
import torch
from tests.engine.recorded_kernels import scale

@pytest.mark.parametrize("n", [64, 100, 128, 200])
def test_scale(n):
    x = torch.ones(n, device="cuda")
    y = torch.zeros_like(x)
    scale[(4,)](x, y, n, BLOCK=64)
    torch.testing.assert_close(y, 3 * x)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_any_pytest_run_is_recorded_with_and_without_workers(tmp_path: Path, workers: str) -> None:
    """In a project that has no matrix.toml; each launch with its tests, and no part is left behind."""
    project = Project(tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = project.portability("record", "-o", "l.json", "--", "pytest", "-n", workers, "test_it.py")
    assert done.returncode == 0, done.stdout + done.stderr
    made = read(tmp_path / "l.json")
    assert sorted(made.tests) == sorted(f"test_it.py::test_scale[{n}]" for n in (64, 100, 128, 200))
    assert len(made.launches) == 2  # multiples of 16, and others
    assert not list(tmp_path.glob("*.part"))


COMPILED = """\
import torch

@torch.compile
def rows(x):
    return torch.softmax(x.float(), -1).sum(0)

rows(torch.randn(32, 64, device="cuda", dtype=torch.float16))
"""


@pytest.mark.slow
def test_kernels_that_torch_compile_generates_are_recorded(tmp_path: Path) -> None:
    """With the module that Inductor wrote, and for the device that was asked for."""
    project = Project(tmp_path)
    (tmp_path / "program.py").write_text(COMPILED)
    done = project.portability("record", "-o", "l.json", "--", "program.py")
    assert done.returncode == 0, done.stdout + done.stderr
    launches = read(tmp_path / "l.json").launches
    assert launches
    assert all(c.origin == "inductor" and c.kernel in c.source for c in launches)


TRAINED = """\
import torch
import torch.nn.functional as F

table = torch.nn.Embedding(100, 64).cuda()
norm = torch.nn.LayerNorm(64).cuda()

@torch.compile(fullgraph=True)
def loss(h, ids, labels):
    h = h.to(torch.bfloat16 if torch.is_autocast_enabled("cuda") else torch.float32).to(h.device)
    h = norm(h + table(ids) + torch.arange(64, device=h.device))  # made on the device within the graph
    return F.cross_entropy(F.dropout(h, 0.1), labels), h.argmax(-1)

x = torch.randn(16, 64, device="cuda", requires_grad=True)
ids, labels = (torch.randint(0, 64, (16,), device="cuda") for _ in range(2))
for amp in (False, True):
    with torch.autocast("cuda", torch.bfloat16, enabled=amp):
        value, best = loss(x * 2, ids, labels)  # x * 2 is no leaf: it has a gradient of its own
    table(best).sum().backward()  # an index that a kernel made is in bounds
    value.backward()
assert x.grad.device.type == "cuda" and x.grad.shape == x.shape
"""


@pytest.mark.slow
def test_kernels_of_gradients_that_torch_compile_generates_are_recorded(tmp_path: Path) -> None:
    """A gradient of a tensor that lies on no device ends no process, and every kernel is for the device."""
    project = Project(tmp_path)
    (tmp_path / "program.py").write_text(TRAINED)
    done = project.portability("record", "-o", "l.json", "--", "program.py")
    assert done.returncode == 0, done.stdout + done.stderr
    kernels = {c.kernel for c in read(tmp_path / "l.json").launches}
    assert any("native_layer_norm_backward" in name for name in kernels), kernels
    assert any("nll_loss_forward" in name for name in kernels), kernels


def test_what_torch_compile_traces_with_is_put_back() -> None:
    """A fake tensor of a device says so again, and a device is decoded as ever."""
    from torch._inductor import lowering, utils
    from torch._subclasses.fake_tensor import FakeTensor

    before = [vars(FakeTensor).get(n) for n in ("__new__", "device", "fake_device")]
    decoding = [vars(m)["decode_device"] for m in (utils, lowering)]
    recorded(lambda: None)
    assert [vars(FakeTensor).get(n) for n in ("__new__", "device", "fake_device")] == before
    assert [vars(m)["decode_device"] for m in (utils, lowering)] == decoding


def shifted(x: torch.Tensor) -> torch.Tensor:
    """Scripted below: torch's functions are no Python to TorchScript."""
    return x + torch.arange(3, device=x.device) + torch.zeros(x.shape[0], device=x.device)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_a_program_may_script_functions_that_create_tensors() -> None:
    """TorchScript knows them by themselves, which others stand for while a program is recorded."""
    made: list[list[float]] = []
    recorded(lambda: made.append(torch.jit.script(shifted)(torch.ones(3, device="cuda")).tolist()))
    assert made == [[1, 2, 3]]
    assert torch.jit.script(shifted)(torch.ones(3)).tolist() == [1, 2, 3]


# ------------------------------------------------------------------------------------- launched by Inductor, counted


class Generated:
    """What the recorder keeps of a size."""

    def __init__(self) -> None:
        self.times = 1

    def close(self) -> None:
        """Nothing is left open."""


class Notes:
    """A recorder that keeps what is noted."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Any, ...], Generated] = {}

    def note_generated(self, kernel: Any, args: tuple[Any, ...]) -> Generated:
        """Count one."""
        return self.entries.setdefault(args[1:], Generated())


class Kernel:
    """As Inductor launches one: by its only launcher, or by a cached one."""

    def __init__(self, fast: bool) -> None:
        self.launched: list[tuple[Any, ...]] = []
        self.launchers = [self._launcher()]
        if fast:
            self._cached_launcher = self.launchers[0]

    def _launcher(self) -> Any:
        def launcher(x: Any, n: int, *, stream: int) -> str:
            self.launched.append((x, n, stream))
            return "launched"

        launcher.config = "its configuration"  # type: ignore[attr-defined]
        return launcher

    def run(self, *args: Any, stream: int) -> Any:
        """Launch."""
        return getattr(self, "_cached_launcher", self.launchers[0])(*args, stream=stream)


@pytest.mark.parametrize("fast", [True, False])
def test_launches_of_generated_kernels_are_counted_by_their_sizes(fast: bool) -> None:
    """They happen as ever, and the kernel is left as it was."""
    kernel, notes = Kernel(fast), Notes()
    before = dict(vars(kernel))
    entry = notes.note_generated(kernel, ("x", 64))
    counting = Counting(cast(Any, notes), kernel, Kernel.run, ("x", 64), cast(Any, entry))
    assert [kernel.run("x", n, stream=7) for n in (64, 64, 32, 32, 32)] == ["launched"] * 5
    counting.settle()
    assert {sizes: e.times for sizes, e in notes.entries.items()} == {(64,): 3, (32,): 3}
    assert kernel.launched == [("x", n, 7) for n in (64, 64, 32, 32, 32)]
    assert counting.counted.config == "its configuration"  # type: ignore[attr-defined]
    counting.detach()
    assert vars(kernel) == before
