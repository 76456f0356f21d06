"""`portability check`: reading what compilers made, comparing targets, and reports of files that break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from portability.backend import Launch, Problem
from portability.checks import differences
from portability.checks.assembly import read
from portability.checks.collect import code_of
from portability.checks.loose import UnreadableError, load, tensors_of
from portability.checks.model import Answer, Atomic, Fault, FileReport, Made, Product, Report, Seen, TargetReport
from portability.checks.rendering import grouped, render
from portability.checks.session import Checker, Request, check_files
from portability.checks.subject import C_UNIT, Subject, argument
from portability.matrix import MatrixError
from portability.model import Evidence, Outcome, Target

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`

IR = """\
#loc = loc("/home/a/kernels/k.py":3:1)
#loc40 = loc("s"(#loc10))
module {
    %acc = scf.for %k = %c0 to %K step %c1 iter_args(%acc_1 = %cst) -> (tensor<16x16xf16>)  : i32 {
      %acc_2 = arith.addf %acc_1, %x : tensor<16x16xf16> loc(#loc12)
      scf.yield %acc_2 : tensor<16x16xf16> loc(#loc)
    } loc(#loc)
    %p = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<8x8xf32> * tensor<8x8xf32> -> tensor<8x8xf32> loc(#loc10)
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%l: bf16 loc(callsite(#loc9 at #loc40)), %r: bf16 loc(callsite(#loc9 at #loc40))):
      %t = arith.addf %l, %r : bf16 loc(#loc9)
      tt.reduce.return %t : bf16 loc(#loc9)
    }) : (tensor<64xbf16>) -> bf16 loc(#loc53)
    %v = tt.load %q, %m, %o : tensor<64x128x!tt.ptr<f32>> loc(#loc11)
    %w = tt.atomic_rmw fadd, acq_rel, gpu, %q, %v : (tensor<64x!tt.ptr<bf16>>, tensor<64xbf16>) -> x loc(#loc12)
}
#loc9 = loc("/site-packages/triton/language/standard.py":314:12)
#loc10 = loc("/home/a/kernels/k.py":7:9)
#loc11 = loc("/home/a/kernels/k.py":8:9)
#loc12 = loc("/home/a/kernels/k.py":9:9)
#loc53 = loc(callsite(#loc9 at #loc40))
"""
PTX = """
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %f1 }
    atom.relaxed.gpu.global.cas.b32 %r1, [ %rd1 ], %r2, %r3;
"""


def made(asm: dict[str, str], patterns: dict[str, str] | None = None) -> Made:
    """Return what is read from a launch that compiled to `asm`."""
    launch = Launch("k", "/home/a/kernels/k.py", 3, constants={"B": 64}, compiled=SimpleNamespace(asm=asm))
    found = read(launch, patterns or {}, lambda path: Path(path).name)
    assert found is not None
    return found


def test_products_have_kinds_instructions_and_lines() -> None:
    assert made({"ttir": IR, "ptx": PTX}).products == (
        Product("f32", "f32", "tf32", scaled=False, instruction="mma.sync tf32", line="k.py:7"),
    )


def test_a_compare_and_swap_loop_is_an_emulated_atomic() -> None:
    assert made({"ttir": IR, "ptx": PTX}).atomics == (Atomic("fadd", "bf16", "compare-and-swap loop", "k.py:9"),)


def test_an_atomic_instruction_is_native() -> None:
    """On both vendors' assembly."""
    nvidia = made({"ttir": IR, "ptx": "atom.global.gpu.acq_rel.add.noftz.bf16 %rs1, [%rd1], %rs2;"})
    amd = made({"ttir": IR, "amdgcn": "global_atomic_pk_add_bf16 v1, v0, v2"})
    assert [a.how for a in (*nvidia.atomics, *amd.atomics)] == ["native", "native"]


def test_half_sums_are_found_in_reductions_and_loops() -> None:
    """A reduction of the language's own has the line of its call."""
    assert {(s.kind, s.line) for s in made({"ttir": IR, "ptx": ""}).half_sums} == {
        ("bf16", "k.py:7"),
        ("f16", "k.py:9"),
    }


def test_the_largest_block_that_is_loaded_is_measured() -> None:
    found = made({"ttir": IR})
    assert (found.tile, found.tile_line) == (64 * 128 * 4, "k.py:8")


def test_the_files_own_patterns_are_counted() -> None:
    found = made({"ttir": IR, "ptx": PTX + PTX}, {"asm": r"atom\S*cas", "ttir": r"arith\.addf"})
    assert (found.found, found.found_ir) == ({"atom.relaxed.gpu.global.cas": 2}, ("arith.addf",))


def product(instruction: str, kind: str = "f32", precision: str = "tf32", accumulator: str = "f32") -> Made:
    return Made("k", products=(Product(kind, accumulator, precision, False, instruction, "k.py:7"),), assembled=True)


def test_float32_products_are_compared_between_targets() -> None:
    """The targets that round are named, and what the others do."""
    instructions = {"cuda:75": "scalar", "cuda:90": "wgmma tf32", "hip:gfx942": "v_mfma_f32_32x32x4_xf32"}
    (fault,) = differences.compare({t: [product(i)] for t, i in instructions.items()}, interpreted=True)
    assert (fault.code, fault.targets) == ("dot-precision", ("cuda:90", "hip:gfx942"))
    assert "float32 on cuda:75, interpreter" in fault.message


def test_three_part_products_are_no_difference() -> None:
    """What is asked for by name is what every target that takes it gives."""
    kernels = {
        "cuda:90": [product("wgmma tf32", precision="tf32x3")],
        "hip:gfx942": [product("v_mfma_f32_32x32x2_f32", precision="ieee")],
    }
    assert not [f for f in differences.compare(kernels, interpreted=False) if f.code == "dot-precision"]


def test_a_widened_float8_product_is_emulated() -> None:
    """Where the front end widens, the kind of the same line on another target tells."""
    kernels = {
        "hip:gfx942": [product("v_mfma_f32_32x32x16_fp8_fp8", "f8E4M3FNUZ")],
        "hip:gfx950": [product("v_mfma_f32_32x32x16_f16", "f16")],
    }
    (fault,) = differences.compare(kernels, interpreted=True)
    assert (fault.code, fault.targets) == ("dot-emulated", ("hip:gfx950",))


def test_what_no_assembly_tells_is_said_of_no_target() -> None:
    """A target that is only lowered may have a matrix unit all the same."""
    how = {"cuda:75": "scalar", "cuda:90": "wgmma f16", "npu:a": ""}
    (fault,) = differences.compare({t: [product(i, "f16")] for t, i in how.items()}, interpreted=True)
    assert (fault.code, fault.targets) == ("dot-emulated", ("cuda:75",))
    assert not differences.compare({"npu:a": [product("")]}, interpreted=True)
    ir_alone = made({"ttir": IR})
    assert [p.instruction for p in ir_alone.products] == [""]


def test_a_float8_product_is_imprecise_where_it_is_summed_whole_by_hopper() -> None:
    def summed(precise: int, instruction: str) -> Made:
        asked = f"inputPrecision = tf32 {{maxNumImpreciseAcc = {precise} : i32}}"
        types = "tensor<8x64xf8E5M2> * tensor<64x8xf8E5M2> -> tensor<8x8xf32> loc(#loc10)"
        found = made({"ttir": f"{IR}\n %p = tt.dot %a, %b, %c, {asked} : {types}\n", "ptx": instruction})
        return replace(found, products=found.products[1:])

    wgmma = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2 x"
    mma = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 x"
    kernels = {"cuda:90": [summed(2**30, wgmma)], "cuda:89": [summed(2**30, mma)], "in parts": [summed(32, wgmma)]}
    (fault,) = [f for f in differences.compare(kernels, interpreted=True) if f.code == "dot-imprecise"]
    assert (fault.targets, fault.line) == (("cuda:90",), "k.py:7")


def test_blocks_are_told_to_be_reordered_unless_they_are_flattened_to_be_reduced() -> None:
    def told(shape: str, use: str) -> tuple[str, ...]:
        flat = f"%r = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<{shape}xf32> loc(#loc10)"
        return made({"ttir": f"{IR}\n {flat}\n {use} loc(#loc11)\n"}).reorders

    assert told("32", '%m = "tt.reduce"(%r) <{axis = 0 : i32}>') == ()
    assert told("32", "tt.store %p, %r") == ("k.py:7",)
    assert told("8x4", '%m = "tt.reduce"(%r) <{axis = 0 : i32}>') == ("k.py:7",)


def test_equal_targets_differ_in_nothing() -> None:
    kernels = {t: [product("mma.sync f16", "f16")] for t in ("cuda:80", "cuda:90")}
    assert not differences.compare(kernels, interpreted=True)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("KeyError: 'Keyword argument x was specified but unrecognised'", "unknown-option"),
        ("OutOfResources: out of resource: shared memory, Required: 9", "shared-memory"),
        ("CompilationError: arange's range must be a power of 2", "not-a-power-of-two"),
        ("CompilationError: something else", "compile-error"),
    ],
)
def test_exceptions_are_named_by_what_they_say(message: str, code: str) -> None:
    assert code_of(Problem(Outcome.COMPILE_ERROR, "exception", message)) == code


def test_targets_are_shortened_where_all_of_a_kind_are_named() -> None:
    known = ["cuda:80", "cuda:90", "hip:gfx942", "interpreter"]
    assert grouped(["cuda:90", "cuda:80", "interpreter"], known) == "cuda:*, interpreter"
    assert grouped(["cuda:90", "hip:gfx942"], known) == "cuda:90, hip:gfx942"


def test_the_exit_code_is_the_worst_of_the_files() -> None:
    fault = Fault("race", "…", Seen.INTERPRETED)
    failed = TargetReport("cuda:90", Evidence.COMPILED, Outcome.HARNESS_ERROR)
    codes = [
        Report((FileReport("a.py"),)).exit_code,
        Report((FileReport("a.py"), FileReport("b.py", (fault,)))).exit_code,
        Report((FileReport("a.py", (fault,)), FileReport("b.py", unreadable="…"))).exit_code,
        Report((FileReport("a.py", targets=(failed,)),)).exit_code,
    ]
    assert codes == [0, 1, 2, 2]


def test_outputs_may_be_nested() -> None:
    """Tensors in the order in which they come; what is no tensor is refused by its type."""
    import torch

    x = torch.zeros(2)
    assert [tuple(t.shape) for t in tensors_of({"a": x, "b": [x, (x, 3.0)], "c": None})] == [(2,), (2,), (2,), ()]
    with pytest.raises(TypeError, match="str"):
        tensors_of([x, "words"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\n", "neither run"),
        ("import no_such_module\n", "cannot be imported: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "cannot be imported: SystemExit"),
        ("SPEC = {'fn': 'k'}\n", "needs 'fn' and 'sig'"),
        ("SPEC = {'fn': 'k', 'sig': {}}\n", "no kernel 'k'"),
        ("def run(dev): ...\nCASE = {'asm': '('}\n", "no regular expression"),
    ],
)
def test_what_cannot_be_called_is_unreadable(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "loose.py").write_text(text)
    with pytest.raises(UnreadableError, match=why):
        load(tmp_path / "loose.py")


@pytest.mark.parametrize(
    ("text", "of_triton"),
    [
        ("from triton.tools.gone import anything\n", True),
        ("import triton\nX = triton.ops\n", True),
        ("import triton\nX = triton.Config({}, gone=1)\n", True),
        ("import triton.language as tl\nX = tl.dtype('fp32').gone\n", True),
        ("import torch\nX = torch.gone\n", False),
        ("import no_such_module\n", False),
        ("X = int(1, 2, 3)\n", False),
    ],
)
def test_an_import_that_triton_fails_is_told_from_others(text: str, of_triton: bool, tmp_path: Path) -> None:
    """A module, a name or an argument that the installed release lacks."""
    (tmp_path / "loose.py").write_text(text)
    with pytest.raises(UnreadableError) as caught:
        load(tmp_path / "loose.py")
    assert caught.value.of_triton is of_triton


def test_a_file_in_a_package_is_imported_as_part_of_it(tmp_path: Path) -> None:
    """Its relative imports work."""
    package = tmp_path / "checked_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("VALUE = 3\n")
    (package / "loose.py").write_text("from .helper import VALUE\ndef run(dev): return VALUE\n")
    assert load(package / "loose.py").module.__name__ == "checked_package.loose"


def test_a_spec_argument_has_the_type_that_triton_would_give_it() -> None:
    """Divisible by 16 or not, and of the right width."""
    assert argument("*fp16", divisible=True).data_ptr() % 16 == 0
    assert argument("*fp16", divisible=False).data_ptr() % 16 != 0
    assert (argument("i32", True) % 16, argument("i32", False) % 16) == (0, 3)
    assert argument("i64", True) > 2**31
    with pytest.raises(UnreadableError, match="fp12"):
        argument("*fp12", True)


def allowed(body: str, tmp_path: Path) -> float:
    """Return what the first element of `run` may be off by, where ref() is 1 everywhere and data() reaches 8."""
    head = "import torch\ndef data():\n    return torch.tensor([8.0, -4.0])\ndef ref():\n    return torch.ones(2)\n"
    (tmp_path / "loose.py").write_text(f"{head}def run(dev):\n    {body}\n")
    subject = Subject(load(tmp_path / "loose.py"), "cpu")
    subject.operator()
    return float(subject.terms()[0][0]) * C_UNIT


def test_a_loose_file_may_be_off_by_what_is_stated(tmp_path: Path) -> None:
    """512 roundoffs of float32 of the largest result, 8 of the largest input, 4 of half precision where it is used."""
    plain = 2.0**-15 + 2.0**-21 * 8
    assert allowed("return torch.ones(2)", tmp_path) == pytest.approx(plain)
    assert allowed("return torch.ones(2).half()", tmp_path) == pytest.approx(plain + 4 * 2.0**-11)
    assert allowed("return torch.ones(2).bfloat16().float()", tmp_path) == pytest.approx(plain + 4 * 2.0**-8)
    assert allowed("return torch.ones(2).to(torch.float8_e4m3fn)", tmp_path) == pytest.approx(plain + 2 * 2.0**-4)


# ------------------------------------------------------------------------------------------------- whole files

HEAD = """\
import os, signal, time
import torch, triton, triton.language as tl

@triton.jit
def double(x_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * FACTOR, mask=mask)

def data():
    return torch.arange(100.0)

def launch(dev, factor=2):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(1,)](x, out, 100, FACTOR=factor, BLOCK=128)
    return out

def ref():
    return data() * 2

"""
BODIES = {
    "right": "run = launch\n",
    "wrong": "def run(dev):\n    return launch(dev, 3)\n",
    "crash": "def run(dev):\n    os.kill(os.getpid(), signal.SIGSEGV)\n",
    "hang": "def run(dev):\n    while True:\n        time.sleep(0.01)\n",
    "two": "def run(dev):\n    return launch(dev), launch(dev)\n",
    "no_reference": "def run(dev):\n    return launch(dev, 5)\ndel ref\n",
    "exits": "def run(dev):\n    raise SystemExit(0)\n",
    "raises": "def run(dev):\n    raise ValueError('no such size')\n",
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FileReport]]:
    """Reports of one file of each kind, on the interpreter and one compile-only target."""
    folder = tmp_path_factory.mktemp("loose")
    checker = Checker(Request(("interpreter", "cuda:86"), run_limit=12, compile_limit=30), folder, folder)
    try:
        found = {}
        for name, body in BODIES.items():
            (folder / f"{name}.py").write_text(HEAD + body)
            found[name] = checker.check(folder / f"{name}.py", only=["interpreter"] if name == "hang" else ())
        yield found
    finally:
        checker.close()


def told(report: FileReport) -> set[tuple[str, str]]:
    return {(f.code, t) for f in report.faults for t in f.targets}


def test_a_right_file_has_no_fault(reports: dict[str, FileReport]) -> None:
    right = reports["right"]
    assert not right.faults
    assert {(t.target, t.evidence, t.outcome) for t in right.targets} == {
        ("interpreter", Evidence.INTERPRETED, Outcome.PASS), ("cuda:86", Evidence.COMPILED, Outcome.PASS),
    }  # fmt: skip


def test_a_wrong_value_has_the_line_that_stored_it(reports: dict[str, FileReport]) -> None:
    """And is no fault of a target that only compiled."""
    (fault,) = reports["wrong"].faults
    assert (fault.code, fault.outcome, fault.line, fault.targets) == (
        "wrong-value",
        Outcome.WRONG,
        "wrong.py:8",
        ("interpreter",),
    )


def test_a_crash_is_a_fault_on_each_target(reports: dict[str, FileReport]) -> None:
    assert told(reports["crash"]) == {("crash", "interpreter"), ("crash", "cuda:86")}
    assert all("SIGSEGV" in f.message for f in reports["crash"].faults)


def test_a_hang_names_its_line(reports: dict[str, FileReport]) -> None:
    (fault,) = reports["hang"].faults
    assert (fault.code, fault.line.rpartition(":")[2]) == ("timeout", str(HEAD.count("\n") + 3))


def test_a_reference_of_another_count_makes_the_file_unreadable(reports: dict[str, FileReport]) -> None:
    assert "2 tensors, its reference 1" in reports["two"].unreadable


class Elsewhere(Checker):
    """A checker with a target whose environment lacks what the file imports."""

    targets = (
        Target("cuda:86", "cuda", evidence=Evidence.COMPILED),
        Target("npu:Ascend910B3", "ascend", environment="ascend", evidence=Evidence.LOWERED),
    )
    lacking: tuple[str, ...] = ("ascend",)
    of_triton = False

    def _ask(self, path: Path, target: Target) -> Answer:
        if target.environment not in self.lacking:
            return Answer(target.evidence, Outcome.PASS)
        broken = "it cannot be imported: ModuleNotFoundError: cuda"
        answer = Answer(target.evidence, Outcome.HARNESS_ERROR, broken=broken, broken_line="a.py:2")
        return replace(answer, of_triton=self.of_triton)


LAUNCHING = """
@triton.jit
def copied(x_ptr, out_ptr):
    tl.store(out_ptr + tl.arange(0, 16), tl.load(x_ptr + 1 + tl.arange(0, 16)))

def run(dev):
    out = torch.empty(16, device=dev)
    copied[(1,)](torch.zeros(16, device=dev), out)
    return out
"""


def test_what_one_environment_cannot_import_is_a_finding_there(tmp_path: Path) -> None:
    """The report of every other target stands; what the default environment cannot import is no file to check."""
    file = tmp_path / "a.py"
    file.write_text("import torch\nimport cuda\n")
    checker = Elsewhere(Request(rules=False), tmp_path, tmp_path)
    try:
        report = checker.check(file)
        (fault,) = report.faults
        assert (fault.code, fault.line, fault.targets) == ("not-imported", "a.py:2", ("npu:Ascend910B3",))
        assert [t.outcome for t in report.targets] == [Outcome.PASS, Outcome.LAUNCH_ERROR]
        checker.lacking = ("default",)
        assert checker.check(file).unreadable.endswith("ModuleNotFoundError: cuda (a.py:2)")
    finally:
        checker.close()


def test_a_file_that_asks_for_a_device_when_imported_is_checked_and_told(tmp_path: Path) -> None:
    """As Triton's tutorials do. Where there is no device that is a finding, and its kernels are judged all the same."""
    first = {
        "own": "DEVICE = triton.runtime.driver.active.get_active_torch_device()",
        "torchs": "UNITS = torch.cuda.get_device_properties(0).multi_processor_count",
        "broken": "1 / 0",
    }
    paths = [tmp_path / f"{name}.py" for name in first]
    for path in paths:
        path.write_text(f"import torch\nimport triton\nimport triton.language as tl\n{first[path.stem]}\n{LAUNCHING}")
    request = Request(("interpreter", "cuda:90", "hip:gfx942"), rules=False)
    own, torchs, broken = check_files(paths, request).files
    assert "ZeroDivisionError" in broken.unreadable
    for report in (own, torchs):
        lost = [(f.code, f.targets) for f in report.faults if f.outcome is Outcome.LAUNCH_ERROR]
        assert lost == [("not-imported", ("interpreter",))]
        assert all(f.line.endswith(".py:4") for f in report.faults if f.code == "not-imported")
    assert "out-of-bounds" in {f.code for f in own.faults}
    assert {t.target for t in torchs.targets if t.launches} == {"cuda:90", "hip:gfx942"}


def test_what_triton_lacks_everywhere_is_a_finding_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\nimport triton.gone\n")
    checker = Elsewhere(Request(rules=False), tmp_path, tmp_path)
    checker.lacking, checker.of_triton = ("default", "ascend"), True
    try:
        report = checker.check(file)
        assert (report.unreadable, Report((report,)).exit_code) == ("", 1)
        assert {(f.code, f.line) for f in report.faults} == {("not-imported", "a.py:2")}
        assert {t for f in report.faults for t in f.targets} == {"cuda:86", "npu:Ascend910B3"}
    finally:
        checker.close()


def test_a_neighbour_named_as_a_standard_module_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("copy", "random", "statistics"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is not the standard library')\n")
    (tmp_path / "right.py").write_text(HEAD + BODIES["right"])
    monkeypatch.chdir(tmp_path)
    report = check_files([Path("right.py"), Path("copy.py")], Request(("interpreter",)))
    assert report.files[0] == replace(report.files[0], faults=(), unreadable="")
    assert "not the standard library" in report.files[1].unreadable


def test_values_are_not_judged_without_a_reference(reports: dict[str, FileReport]) -> None:
    assert not reports["no_reference"].faults


@pytest.mark.parametrize("name", ["raises", "exits"])
def test_what_the_wrapper_raises_has_its_line(name: str, reports: dict[str, FileReport]) -> None:
    lines = {f.line.rpartition(":")[2] for f in reports[name].faults}
    assert lines == {str(HEAD.count("\n") + 2)}
    assert told(reports[name]) == {("launch-error", "interpreter"), ("launch-error", "cuda:86")}


def test_a_report_is_one_json_object(reports: dict[str, FileReport]) -> None:
    """With empty lists where there is nothing."""
    data = json.loads(render(Report((reports["right"], reports["wrong"])), "json"))
    right, wrong = data["files"]
    assert (data["version"], right["faults"], right["path"]) == (1, [], "right.py")
    assert wrong["faults"][0]["outcome"] == "wrong"


def test_a_target_that_is_nothing_here_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def run(dev): ...\n")
    with pytest.raises(MatrixError, match="cuda:91"):
        check_files([tmp_path / "a.py"], Request(("cuda:91",)))
