"""Each trap between Triton and an Intel GPU's native code, in the environment `xpu`: it is told, not passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from portability_xpu import native
from portability_xpu.xpu import Xpu

from portability import environments
from portability.backend import look_up_blocks
from portability.catalogue import Catalogue, from_text
from portability.environments import Environment
from portability.kernel import Blocks
from portability.model import Cell, Evidence, Observation, Outcome
from portability.pool import Runner

HERE = Path(__file__).parent
LIMIT = 300.0  # seconds; a kernel takes one
INSTALLED = environments.installed().get("xpu")
pytestmark = pytest.mark.skipif(INSTALLED is None, reason="portability env create xpu")
needs_ocloc = pytest.mark.skipif(native.program() is None, reason="apt-get install intel-opencl-icd")


class Xpus:
    """The targets, in a runner of their environment."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self.runner = Runner(environment, folder, ["xpu_cases"], [f"{Xpu.__module__}:{Xpu.__name__}"])
        self.catalogue: Catalogue = from_text(self.runner.ask({"op": "catalogue", "ask": ["xpu"]}, LIMIT)["catalogue"])

    def observe(self, kernel: str, target: str, dtype: str = "float32", sample: str = "one") -> Observation:
        """Return what became of a cell with the blocks of the adapter's table."""
        found = next(t for t in self.catalogue.targets if t.id == target)
        case = self.catalogue.case(kernel)
        blocks = look_up_blocks(Xpu(), kernel, target, dtype, Blocks(dict(case.blocks))).blocks
        request = {"blocks": dict(blocks), "options": {}}
        return self.runner.run(request, Cell(kernel, dtype, sample, target, "xpu"), found, LIMIT)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[dict[str, str]], Xpus]]:
    """Start a runner with these variables."""
    made: list[Xpus] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)  # where xpu_cases is
        folder = tmp_path_factory.mktemp("xpu")
        patch.setenv("PORTABILITY_CACHE", str(folder / "cache"))

        def started(variables: dict[str, str]) -> Xpus:
            assert INSTALLED is not None
            made.append(Xpus(Environment("xpu", INSTALLED.python, variables), folder))
            return made[-1]

        yield started
        for xpus in made:
            xpus.runner.close()


@pytest.fixture(scope="module")
def xpus(start: Callable[[dict[str, str]], Xpus]) -> Xpus:
    return start({})


@needs_ocloc
def test_with_ocloc_the_evidence_is_compiled(xpus: Xpus) -> None:
    assert {t.evidence for t in xpus.catalogue.targets} == {Evidence.COMPILED}
    assert all(t.versions["ocloc"] for t in xpus.catalogue.targets)
    seen = xpus.observe("double", "xpu:pvc")
    assert (seen.outcome, seen.evidence) == (Outcome.PASS, Evidence.COMPILED)


def test_without_ocloc_it_is_lowered_and_says_so(start: Callable[[dict[str, str]], Xpus]) -> None:
    """Nothing on the path: triton-xpu alone."""
    alone = start({"PATH": "/nowhere"})
    assert {t.evidence for t in alone.catalogue.targets} == {Evidence.LOWERED}
    assert {t.why for t in alone.catalogue.targets} == {"no ocloc: SPIR-V, and no native code"}
    seen = alone.observe("double", "xpu:pvc")
    assert (seen.outcome, seen.evidence) == (Outcome.PASS, Evidence.LOWERED)
    assert [w.code for w in alone.observe("ptx", "xpu:pvc").warnings] == ["inline-assembly"]


@needs_ocloc
@pytest.mark.parametrize("target", Xpu.targets)
def test_assembly_that_ocloc_drops_is_a_compile_error_at_its_line(xpus: Xpus, target: str) -> None:
    """ocloc prints "Build succeeded." of it."""
    seen = xpus.observe("ptx", target)
    assert seen.outcome is Outcome.COMPILE_ERROR
    assert "ocloc drops the inline assembly" in seen.detail
    file, _, line = seen.line.rpartition(":")
    assert file.endswith("xpu_cases.py")
    assert "rcp.approx" in (HERE / "xpu_cases.py").read_text().splitlines()[int(line) - 1]


@needs_ocloc
def test_assembly_that_ocloc_knows_passes(xpus: Xpus) -> None:
    assert xpus.observe("visa", "xpu:pvc").outcome is Outcome.PASS


@pytest.mark.parametrize(("target", "limit"), [("xpu:pvc", 131072), ("xpu:dg2", 65536)])
def test_shared_memory_beyond_the_device_never_reaches_ocloc(xpus: Xpus, target: str, limit: int) -> None:
    """It would not come back."""
    seen = xpus.observe("over_limit", target, "float16")
    assert seen.outcome is Outcome.OUT_OF_RESOURCES
    assert f"Hardware limit: {limit}" in seen.detail


def test_more_work_items_than_a_group_has_are_refused(xpus: Xpus) -> None:
    seen = xpus.observe("too_many_threads", "xpu:pvc")
    assert seen.outcome is Outcome.OUT_OF_RESOURCES
    assert "threads" in seen.detail


@needs_ocloc
def test_a_product_becomes_matrix_instructions(xpus: Xpus) -> None:
    (resources,) = xpus.observe("product", "xpu:pvc", "float16").resources
    assert resources.matrix == "dpas hf"
    assert resources.shared_limit == 131072


@needs_ocloc
def test_a_warm_cache_gives_the_same_answers(xpus: Xpus) -> None:
    for kernel, dtype in (("product", "float16"), ("ptx", "float32"), ("double", "float64")):
        first, second = (xpus.observe(kernel, "xpu:dg2", dtype) for _ in range(2))
        assert (first.outcome, first.detail, first.resources) == (second.outcome, second.detail, second.resources)


@needs_ocloc
@pytest.mark.parametrize("target", Xpu.targets)
def test_dtypes_are_claimed_that_work_and_no_others(xpus: Xpus, target: str) -> None:
    case = xpus.catalogue.case("convert")
    works = {d for d in case.dtypes if xpus.observe("convert", target, d).outcome is Outcome.PASS}
    assert works == {d for d in case.dtypes if Xpu().claims(target, d)}


@needs_ocloc
@pytest.mark.parametrize("target", Xpu.targets)
@pytest.mark.parametrize("kernel", ["vector_add", "softmax", "matmul"])
def test_bundled_kernels_compile_with_the_blocks_of_the_table(xpus: Xpus, kernel: str, target: str) -> None:
    sample = next(s.name for s in xpus.catalogue.case(kernel).samples if s.quick)
    seen = xpus.observe(kernel, target, "float16", sample)
    assert seen.outcome is Outcome.PASS, seen.detail
    # Without 2-D block loads triton-xpu 3.3 makes no matrix instructions: a product takes whatever registers there are.
    spills = (kernel, target) == ("matmul", "xpu:dg2")
    assert ("register-spills" in {w.code for w in seen.warnings}) is spills
