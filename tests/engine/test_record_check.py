"""What is found when recorded launches are compiled for other targets, or interpreted."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import os
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import triton.language as tl

from portability import expectations
from portability.backend import discover
from portability.model import Cell, Evidence, Observation, Outcome, Standing, Target, to_json
from portability.porting import regrid
from portability.record import check as checks
from portability.record import rendering
from portability.record.cases import Launched, first_of_each, infos, launched, small
from portability.record.check import Request as CheckRequest
from portability.record.check import check
from portability.record.model import Call, Grid, Recording, read, write
from portability.record.replay import Replay, asked
from portability.results import write_runs
from portability.run import Options
from tests.engine import recorded_kernels as kernels
from tests.engine.conftest import Project
from tests.engine.test_record import recorded, scaled

TARGETS = {
    "cuda:90": Target("cuda:90", "cuda", evidence=Evidence.COMPILED),
    "hip:gfx942": Target("hip:gfx942", "rocm", evidence=Evidence.COMPILED),
    "interpreter": Target("interpreter", "interpreter", evidence=Evidence.INTERPRETED),
}


def launches(program: Callable[[], Any]) -> list[Launched]:
    """Return what is to be compiled of a program's launches."""
    return launched(recorded(program))


def observe(launch: Launched, target: str, configs: int = 1) -> Observation:
    """Return what becomes of a launch on a target."""
    here = TARGETS[target]
    replay = Replay(launch.calls, discover()[here.backend], here, configs)
    return replay.observe(launch.cell(here), Options(timing=False))


def tuned() -> None:
    """Launch what has a configuration of 32 warps, which AMD's wave64 refuses."""
    kernels.tuned[(1,)](torch.empty(128, device="cuda"), 128)


# ---------------------------------------------------------------------------------------------------- compiled


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_a_launch_compiles_as_it_was_specialised(target: str) -> None:
    """What was recorded for one target compiles for each."""
    (launch,) = launches(scaled)
    seen = observe(launch, target)
    assert (seen.outcome, seen.evidence, seen.binaries) == (Outcome.PASS, Evidence.COMPILED, 1)


def test_too_many_threads_are_refused_as_the_device_would() -> None:
    """With what the binary needs, at the kernel."""
    (launch,) = launches(lambda: scaled(num_warps=32))
    seen = observe(launch, "hip:gfx942")
    assert seen.outcome is Outcome.OUT_OF_RESOURCES
    assert "recorded_kernels.py" in seen.line
    assert seen.resources


def test_a_kernel_is_found_behind_any_number_of_decorators() -> None:
    """Packages put a heuristic for each of their constants on a kernel."""
    x = torch.zeros(100)
    (launch,) = launches(lambda: kernels.decorated[(2,)](x, x, 100))
    assert observe(launch, "cuda:90").outcome is Outcome.PASS


def test_a_compile_error_is_told_with_the_kernels_line() -> None:
    """The line that is refused, and not that of the kernel."""
    (launch,) = launches(lambda: kernels.refused[(1,)](torch.empty(64, device="cuda"), BLOCK=64))
    seen = observe(launch, "cuda:90")
    assert seen.outcome is Outcome.COMPILE_ERROR
    number = int(seen.line.rpartition(":")[2])
    assert "no_such_function" in Path(kernels.__file__).read_text().splitlines()[number - 1]


def test_a_missing_overload_is_told_as_one() -> None:
    """Triton's message is the types alone."""
    (launch,) = launches(lambda: kernels.half_tanh[(1,)](torch.empty(64, device="cuda", dtype=torch.float16), BLOCK=64))
    said = "CompilationError: KeyError: (triton.language.float16): no overload takes these types"
    assert observe(launch, "cuda:90").detail.startswith(said)


def test_a_tuned_launch_works_where_one_configuration_does() -> None:
    """As on a device, whose tuner drops the others."""
    (launch,) = launches(tuned)
    assert observe(launch, "hip:gfx942").outcome is Outcome.PASS


def test_every_configuration_is_tried_where_that_is_asked() -> None:
    """Those that a tuner would drop are told as warnings."""
    (launch,) = launches(tuned)
    seen = observe(launch, "hip:gfx942", configs=0)
    assert seen.outcome is Outcome.PASS
    assert [w.code for w in seen.warnings] == ["config-fails"]


def test_a_tuned_launch_fails_where_no_configuration_works() -> None:
    """There is nothing left to take."""
    (launch,) = launches(tuned)
    wide = dataclasses.replace(launch, calls=tuple(c for c in launch.calls if c.options["num_warps"] == 32))
    assert observe(wide, "hip:gfx942").outcome is Outcome.OUT_OF_RESOURCES


def test_the_largest_grid_is_judged() -> None:
    """What a target refuses, it refuses there."""
    x = torch.empty(64)
    (launch,) = launches(lambda: [kernels.scale[(1, n)](x, x, 64, BLOCK=64) for n in (1, 70000)])
    seen = observe(launch, "cuda:90")
    assert seen.outcome is Outcome.OUT_OF_RESOURCES
    assert "70000" in seen.detail


# ----------------------------------------------------------------------------------------------------- rebuilt


def test_a_kernel_of_a_local_scope_is_made_again() -> None:
    """With what it takes from around it, and on its own lines."""
    (launch,) = launches(lambda: kernels.made_within(tl.constexpr(2))[(1,)](torch.empty(9, device="cuda"), 9, BLOCK=16))
    assert launch.calls[0].closure == {"factor": {"constexpr": 2}}
    assert observe(launch, "cuda:90").outcome is Outcome.PASS


def changed(launch: Launched, **fields: Any) -> Launched:
    """Return a launch whose record says something else."""
    return dataclasses.replace(launch, calls=tuple(dataclasses.replace(c, **fields) for c in launch.calls))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kernel": "gone"}, "no kernel gone"),
        ({"module": "no_such_module", "file": "/nowhere/gone.py"}, "gone.py is not there"),
        ({"arguments": {"x_ptr": {"unknown": "some.Object"}}}, "'x_ptr' was some.Object"),
        ({"arguments": {"z": 1}}, "no argument z any more"),
    ],
)
def test_what_cannot_be_had_again_is_unavailable(fields: dict[str, Any], said: str) -> None:
    """It is no fault of the kernel's, and not a pass either."""
    (launch,) = launches(scaled)
    seen = observe(changed(launch, **fields), "cuda:90")
    assert (seen.outcome, seen.evidence) == (Outcome.UNAVAILABLE, Evidence.NONE)
    assert said in seen.detail


def test_a_source_that_has_changed_is_said() -> None:
    """What is compiled is not what was launched."""
    (launch,) = launches(scaled)
    assert [w.code for w in observe(changed(launch, digest="0"), "cuda:90").warnings] == ["source-changed"]


# -------------------------------------------------------------------------------------------------- interpreted


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.bool, torch.float8_e5m2], ids=str)
def test_a_right_launch_is_interpreted_without_a_finding(dtype: torch.dtype) -> None:
    """Two orders of programs, two kinds of poison."""

    def program() -> None:
        x = torch.zeros(64, device="cuda", dtype=dtype)
        kernels.unmasked[(1,)](x, torch.zeros_like(x), BLOCK=64)

    (launch,) = launches(program)
    seen = observe(launch, "interpreter")
    assert (seen.outcome, seen.evidence) == (Outcome.PASS, Evidence.INTERPRETED)


def test_an_access_past_the_end_is_found() -> None:
    """Of the storage that was recorded."""

    def program() -> None:
        x = torch.empty(50, device="cuda")
        kernels.unmasked[(1,)](x, torch.empty_like(x), BLOCK=64)

    (launch,) = launches(program)
    assert observe(launch, "interpreter").outcome is Outcome.OUT_OF_BOUNDS


def test_the_grid_is_that_of_the_arguments() -> None:
    """Those of the smallest launch were recorded, and a larger grid would leave them."""
    (launch,) = launches(lambda: [scaled(1000), scaled(100)])
    assert observe(launch, "interpreter").outcome is Outcome.PASS


def test_a_view_may_reach_what_lies_around_it_in_its_storage() -> None:
    """As on a device: the tensor that the kernel was given is a part of one that holds what it reads."""

    def program() -> None:
        x = torch.empty(2, 64, device="cuda")
        kernels.unmasked[(1,)](x[0, :50], torch.empty(64, device="cuda"), BLOCK=64)

    (launch,) = launches(program)
    assert observe(launch, "interpreter").outcome is Outcome.PASS


def test_indices_are_in_bounds() -> None:
    """Values were not recorded: an index of any other value would be a finding of the harness's own making."""

    def program() -> None:
        index = torch.arange(64, device="cuda")
        kernels.gathered[(1,)](torch.empty(64, device="cuda"), index, torch.empty(64, device="cuda"), BLOCK=64)

    (launch,) = launches(program)
    assert observe(launch, "interpreter").outcome is Outcome.PASS


@pytest.mark.parametrize(("kernel", "outcome"), [("added", Outcome.PASS), ("last_wins", Outcome.RACE)])
def test_an_order_that_rounds_is_told_from_one_that_decides(kernel: str, outcome: Outcome) -> None:
    """Atomic sums differ by their rounding; a result that is one program's or another's is a race."""

    def program() -> None:
        x, y = torch.ones(64, device="cuda", dtype=torch.bfloat16), torch.zeros(8, device="cuda", dtype=torch.bfloat16)
        getattr(kernels, kernel)[(64,)](x, y)

    (launch,) = launches(program)
    seen = observe(launch, "interpreter")
    assert seen.outcome is outcome
    assert outcome is Outcome.PASS or "y_ptr" in seen.detail  # the argument is named, and no output of a launch


def test_programs_that_meet_by_equal_indices_alone_are_no_race() -> None:
    """Their values were not recorded: with 0, 1, 2, … each program has its own element."""
    x, y, i = torch.ones(64), torch.zeros(64), torch.arange(64)
    (launch,) = launches(lambda: kernels.scattered[(64,)](x, i, y))
    seen = observe(launch, "interpreter")
    assert seen.outcome is Outcome.PASS, seen.detail
    assert "equal-indices" in {w.code for w in seen.warnings}


def test_addresses_out_of_memory_cannot_be_interpreted() -> None:
    """A table of pointers holds zeros here."""
    (launch,) = launches(lambda: kernels.through_addresses[(1,)](torch.zeros(4, dtype=torch.int64), torch.ones(4)))
    seen = observe(launch, "interpreter")
    assert (seen.outcome, "takes addresses out of a tensor" in seen.detail) == (Outcome.UNAVAILABLE, True), seen.detail


def test_what_is_too_large_is_not_interpreted() -> None:
    """By the bytes of its storages."""
    large = torch.empty(1).expand(2**30)  # of one element
    held = torch.empty(2**25)
    (few,) = launches(lambda: kernels.scale[(1,)](large, large, 1000, BLOCK=64))
    (many,) = launches(lambda: kernels.scale[(1,)](held, held, 1000, BLOCK=64))
    assert (small(few), small(many)) == (True, False)


# -------------------------------------------------------------------------------------------------------- rows


def test_kernels_of_one_name_are_told_apart_by_their_module() -> None:
    """Within a package; those of other packages have the package's name before them anyway."""
    calls = tuple(Call("k", module, "/k.py", 1, "0") for module in ("p.a", "p.b", "q.a"))
    assert [x.name for x in launched(Recording("cuda:90", launches=calls))] == ["p:a.k", "p:b.k", "q:k"]


def test_as_much_of_a_module_is_named_as_tells_its_kernels_apart() -> None:
    """A package may have modules of one name in several folders."""
    calls = tuple(Call("k", module, "/k.py", 1, "0") for module in ("p.a.ops", "p.b.ops"))
    assert [x.name for x in launched(Recording("cuda:90", launches=calls))] == ["p:a.ops.k", "p:b.ops.k"]


def test_modules_that_a_package_writes_are_not_named() -> None:
    """Their names hold a hash or the number of a process, and are others the next time."""
    calls = tuple(
        Call("k", f"_made_{n}", f"/cache/{n}.py", 1, "0", origin="generated", package="p", source=f"# {n // 2}")
        for n in range(3)
    )
    assert {x.name for x in launched(Recording("cuda:90", launches=calls))} == {"p:k"}
    assert calls[0].identity == calls[1].identity != calls[2].identity


def test_a_launch_is_the_same_wherever_its_package_is_installed() -> None:
    """So a published recording gives the cells of the one that it was made from."""
    here, there = (
        launched(Recording("cuda:90", launches=(Call("k", "p.a", f"{folder}p/a.py", 1, "0"),)))[0]
        for folder in ("/opt/lib/site-packages/", "")
    )
    assert here.sample == there.sample


def test_a_package_is_a_row_of_the_packages_view() -> None:
    """`portability table --view packages` shows it."""
    (case,) = infos(launches(scaled))
    assert case.group == "package:tests"


@pytest.mark.slow
def test_a_recording_is_checked_from_the_command_line(tmp_path: Path) -> None:
    """The table, what fails with its line, exit code 1, and a results file that the table's command reads."""
    from portability.record.model import write

    project = Project(tmp_path)
    write(tmp_path / "l.json", recorded(lambda: scaled(num_warps=32)))
    words = ("check", "l.json", "--target", "cuda:90", "--target", "hip:gfx942", "--results", "r.jsonl", "-n", "1")
    done = project.portability(*words)
    assert done.returncode == 1, done.stderr
    assert "tests:scale on hip:gfx942: out_of_resources at" in done.stdout
    assert "scale    compiled 1/1" in " ".join(done.stdout.split("  ")) or "compiled 1/1" in done.stdout
    table = project.portability("table", "--view", "packages", "r.jsonl")
    assert "compiled 100 %" in table.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "cuda:9*9"), "'cuda:9*9' is nothing here"),
        (("--kernel", "scall"), "'scall' is none that was recorded"),
        (("--configs", "few"), "'few' is neither a number nor `all`"),
    ],
)
def test_a_choice_that_is_nothing_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """With exit code 2."""
    from portability.record.model import write

    project = Project(tmp_path)
    write(tmp_path / "l.json", recorded(scaled))
    done = project.portability("check", "l.json", *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


# --------------------------------------------------------------------------------------------------- generated

GENERATED = """\
import triton
import triton.language as tl

@triton.jit
def made_while_it_ran(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
"""


def generated(folder: Path) -> Launched:
    """Return a launch of a kernel whose module is written, imported from its file, and gone again."""
    path = folder / "written_meanwhile.py"
    path.write_text(GENERATED)
    spec = importlib.util.spec_from_file_location("written_meanwhile", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (launch,) = launches(lambda: module.made_while_it_ran[(1,)](torch.empty(64, device="cuda"), BLOCK=64))
    path.unlink()
    return launch


def test_a_kernel_that_its_package_generates_is_made_again(tmp_path: Path) -> None:
    """From the module's text, which the recording holds."""
    assert observe(generated(tmp_path), "cuda:90").outcome is Outcome.PASS


def test_a_generated_kernel_belongs_to_the_package_that_launches_it(tmp_path: Path) -> None:
    """And not to a module that nobody knows by its name."""
    launch = generated(tmp_path)
    assert (launch.calls[0].origin, launch.name) == ("generated", "tests:made_while_it_ran")


def test_a_generated_kernels_error_names_the_file_that_was_written(tmp_path: Path) -> None:
    """And not the one that it was written into again."""
    launch = generated(tmp_path)
    broken = changed(launch, source=GENERATED.replace("1.0", "tl.no_such_function()"), digest="")
    seen = observe(broken, "cuda:90")
    assert seen.outcome is Outcome.COMPILE_ERROR
    assert seen.line == "written_meanwhile.py:6"


def test_a_path_of_another_machine_is_not_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package may name the folder that it is installed in."""
    made = {"PORTABILITY_A": "nvidia", "PORTABILITY_B": str(tmp_path / "gone"), "PORTABILITY_C": str(tmp_path)}
    for name in made:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setitem(os.environ, name, "")  # so that it is put back
    recording = Recording("cuda:90", variables=made)
    asked({"target": to_json(TARGETS["cuda:90"]), "recording": to_json(recording), "calls": []})
    assert [os.environ[n] for n in made] == ["nvidia", "", str(tmp_path)]


def test_variables_that_a_program_sets_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package may ask for them when it is imported again."""
    monkeypatch.delenv("CHOSEN_VENDOR", raising=False)
    made = recorded(lambda: monkeypatch.setenv("CHOSEN_VENDOR", "amd"))
    assert made.variables == {"CHOSEN_VENDOR": "amd"}


# ------------------------------------------------------------------------------------------------ what is left out


def several() -> None:
    """Launch one kernel with two specialisations, and another."""
    x = torch.ones(64, device="cuda")
    for n in (64, 63):
        kernels.scale[(1,)](x, x, n, BLOCK=64)
    scaled()


def test_of_each_kernel_the_first_launch_is_enough_where_that_is_asked() -> None:
    found = launches(several)
    assert len(found) > len({x.name for x in found})
    assert [x.sample for x in first_of_each(found)] == list({x.name: x.sample for x in reversed(found)}.values())[::-1]


def test_a_compressed_recording_is_read(tmp_path: Path) -> None:
    """As they are published."""
    path = tmp_path / "launches.json"
    write(path, recorded(scaled))
    packed = tmp_path / "launches.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed) == read(path)


def test_an_interruption_waits_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being compiled is ended with its process, and its end is no finding."""
    closed, written = threading.Event(), list[Observation]()

    def observe(_: Any, launch: Launched, target: Target, *__: Any) -> Observation:
        if written and not closed.wait(20):
            pytest.fail("the process was not ended")
        return Observation(launch.cell(target), Evidence.COMPILED, Outcome.CRASH if closed.is_set() else Outcome.PASS)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    fake = cast(Any, SimpleNamespace(close=closed.set, ask=lambda *_: {}))
    monkeypatch.setattr(checks, "observe", observe)
    monkeypatch.setattr(checks, "Harness", lambda *_: SimpleNamespace(adopt=lambda _: None, close=closed.set))
    fake.matrix = fake.folder = fake.root = fake.catalogue = None
    work = checks._Work([recorded(several)], [TARGETS["cuda:90"]], CheckRequest(workers=2))
    with pytest.raises(KeyboardInterrupt):
        work.run(fake, cast(Any, SimpleNamespace(write=written.append)), interrupted)
    assert [o.outcome for o in written] == [Outcome.PASS]


@pytest.mark.slow
def test_a_check_goes_on_where_an_earlier_one_stopped(tmp_path: Path) -> None:
    """What the results hold is not compiled again."""
    recording, results = recorded(several), tmp_path / "results.jsonl"
    whole = check([recording], CheckRequest(("cuda:90",)), results)
    kept = dataclasses.replace(whole, observations=whole.observations[:1], footer=None)
    write_runs(results, [kept])
    again = check([recording], CheckRequest(("cuda:90",), resume=True), results)
    assert again.observations[0] == kept.observations[0]
    assert {o.cell for o in again.observations} == {o.cell for o in whole.observations}
    assert not again.interrupted


def test_what_fails_alike_but_for_its_numbers_is_one_line() -> None:
    """Two specialisations of a kernel that need too much, or whose types differ in their shapes."""
    seen = [
        Observation(
            Cell("p:k", "float32", s, "cuda:75"), Evidence.COMPILED, Outcome.COMPILE_ERROR, "compile", said, "k.py:3"
        )
        for s, said in (("64", "got 'tensor<128x64xi8>'"), ("128", "got 'tensor<128x128xi8>'"))
    ]
    (line,) = rendering._failing(seen, {})
    assert line == "p:k (2 launches) on cuda:75: compile_error at k.py:3: got 'tensor<128x64xi8>'"


def test_what_the_interpreter_found_is_told_with_the_access_that_it_comes_from() -> None:
    """An output that follows what no one wrote has a load past the end behind it."""
    said = "y[0] follows what memory held\nload of 31 of 32 lanes outside x"
    cell = Cell("p:k", "float32", "1", "interpreter")
    (line,) = rendering._failing([Observation(cell, Evidence.INTERPRETED, Outcome.UNDEFINED_VALUE, "", said)], {})
    assert line.endswith("undefined_value: y[0] follows what memory held; load of 31 of 32 lanes outside x")


def test_what_many_kernels_fail_for_is_one_line() -> None:
    """With each of them and its line; two are told apart."""
    seen = [
        Observation(Cell(f"p:k{i}", "float32", "1", t), Evidence.COMPILED, Outcome.COMPILE_ERROR, "", "no", f"k:{i}")
        for t in ("cuda:90", "hip:gfx942")
        for i in range(3)
    ]
    (line,) = rendering._failing(seen, {})
    assert line == "3 kernels on cuda:90, hip:gfx942: compile_error: no: p:k0 at k:0, p:k1 at k:1, p:k2 at k:2"
    assert len(list(rendering._failing([o for o in seen if o.cell.kernel != "p:k2"], {}))) == 2


def recording_of(program: str, target: str, *kernels: str) -> Recording:
    """Return what a program launched for a target."""
    return Recording(target, program=(program,), launches=tuple(Call(k, "m", "m.py", 1, "") for k in kernels))


def test_a_target_is_given_what_each_program_launched_for_its_compiler() -> None:
    """Of a program that was recorded for others alone it is given that, which is said."""
    recordings = [
        recording_of("a.py", "cuda:90", "on_cuda"),
        recording_of("a.py", "hip:gfx942", "on_hip"),
        recording_of("b.py", "cuda:90", "b"),
    ]
    given = {t: {c.kernel for c in checks.recorded_for(recordings, TARGETS[t]).launches} for t in TARGETS}
    assert given["cuda:90"] == {"on_cuda", "b"}
    assert given["hip:gfx942"] == {"on_hip", "b"}
    assert given["interpreter"] == {"on_cuda", "on_hip", "b"}
    seen = [
        Observation(Cell("m:b", "float32", "1", t), Evidence.COMPILED, Outcome.PASS) for t in ("cuda:90", "hip:gfx942")
    ]
    (said,) = rendering._for_others(seen, recordings)
    assert said == (
        "b.py was recorded for cuda:90, and may launch otherwise on hip:gfx942: portability record --target hip:gfx942"
    )
    seen = [Observation(Cell("m:b", "float32", "1", "npu:Ascend910B3"), Evidence.LOWERED, Outcome.PASS)]
    assert all("portability record" not in said for said in rendering._for_others(seen, recordings))


@pytest.mark.parametrize("claimed", [True, False])
@pytest.mark.parametrize("outcome", [Outcome.COMPILE_ERROR, Outcome.OUT_OF_RESOURCES, Outcome.RACE])
def test_what_fails_of_a_package_is_no_regression_of_a_matrix(outcome: Outcome, claimed: bool) -> None:
    """Nothing is declared of other projects' kernels: their faults are shown, and no run fails by them."""
    seen = Observation(Cell("p:k", "float32", "1", "cuda:90"), Evidence.COMPILED, outcome)
    assert expectations.judge([], seen, claimed, date.min, foreign=True).standing in (
        Standing.UNKNOWN,
        Standing.AS_EXPECTED,
    )


def test_a_package_may_hold_what_its_target_does_not_compute_in() -> None:
    """A cast or a copy of float8 compiles where no product of it does: no claim of the adapter's is refuted."""
    seen = Observation(Cell("p:k", "float8_e4m3fn", "1", "cuda:80"), Evidence.COMPILED, Outcome.PASS)
    assert expectations.judge([], seen, False, date.min, foreign=True).standing is Standing.AS_EXPECTED


# ------------------------------------------------------------------------------------------------ other blocks


@pytest.mark.parametrize(("programs", "outcome"), [(8, Outcome.PASS), (4, Outcome.WRONG)])
def test_a_launch_with_other_blocks_is_compared_with_the_recorded_one(programs: int, outcome: Outcome) -> None:
    """Interpreted on equal values: too few programs leave elements out."""
    x, y = torch.ones(250), torch.empty(250)
    (launch,) = launches(lambda: kernels.scale[(4,)](x, y, 250, BLOCK=64))
    (call,) = launch.calls
    smaller = dataclasses.replace(call, arguments={**call.arguments, "BLOCK": 32}, grids=(Grid((programs,)),))
    here = TARGETS["interpreter"]
    replay = Replay([smaller], discover()[here.backend], here, against=call)
    assert replay.observe(launch.cell(here), Options(timing=False)).outcome is outcome


@pytest.mark.parametrize(
    ("grid", "old", "new", "made"),
    [
        ((4,), {"BLOCK": 64}, {"BLOCK": 32}, (8,)),  # cdiv(250, BLOCK)
        ((4, 7), {"BLOCK": 64}, {"BLOCK": 128}, (2, 7)),
        ((4 * 5,), {"BLOCK": 64, "BLOCK_N": 16}, {"BLOCK": 32, "BLOCK_N": 16}, (8 * 5,)),  # times cdiv(70, BLOCK_N)
        ((4 * 70,), {"BLOCK": 64}, {"BLOCK": 32}, (8 * 70,)),  # times a size
        ((132,), {"BLOCK": 64}, {"BLOCK": 32}, (132,)),  # of nothing that is known
        ((4,), {"BLOCK": 64, "num_warps": 8}, {"BLOCK": 64, "num_warps": 4}, (4,)),
    ],
)
def test_a_grid_is_guessed_from_the_recorded_one(
    grid: tuple[int, ...], old: dict[str, int], new: dict[str, int], made: tuple[int, ...]
) -> None:
    """The likeliest guess comes first."""
    constants = {n: str(v) for n, v in old.items() if n != "num_warps"}
    call = Call("k", "m", "/m.py", 1, "0", {"M": 250, "N": 70}, constants=constants, grids=(Grid(grid),))
    assert regrid.grids(call, old, new)[0] == made
