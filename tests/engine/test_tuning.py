"""The search for blocks: what is tried, what is dropped, what is first, and what is written."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import tomllib

from portability.backend import discover
from portability.catalogue import Catalogue
from portability.commands import tune
from portability.matrix import Matrix
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, Resources, SampleInfo, Target, Timing
from portability.tuning import Trial, candidates, entry, fold, rank, write_entry

from .conftest import Project

CELL = Cell("matmul", "float16", "64", "hip:gfx942")


def trial(
    m: int, n: int, occupancy: float, spills: int = 0, outcome: Outcome = Outcome.PASS, ms: float | None = None
) -> Trial:
    timing = Timing(ms, ms, ms, "launch", 10, 1, 1, stable=True) if ms is not None else None
    resources = (Resources("matmul_kernel", spills=spills, occupancy=occupancy, matrix="v_mfma_f32"),)
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "num_warps": 4}
    return Trial(blocks, Observation(CELL, Evidence.COMPILED, outcome, resources=resources, timing=timing))


def test_the_space_is_thinned_evenly() -> None:
    tried = candidates({"A": range(10), "B": range(10)}, {"C": 1}, 25)
    assert len(tried) == 25
    assert {t["A"] for t in tried} == set(range(10))
    assert all(t["C"] == 1 for t in tried)


def test_no_value_is_left_out_when_the_space_is_thinned() -> None:
    """A third of a space whose last dimension has three values still has all of them."""
    tried = candidates({"BLOCK_M": (32, 64, 128, 256), "num_warps": (4, 8), "num_stages": (2, 3, 4)}, {}, 8)
    assert len({tuple(t.values()) for t in tried}) == 8
    assert {t["num_stages"] for t in tried} == {2, 3, 4}
    assert {t["num_warps"] for t in tried} == {4, 8}
    assert {t["BLOCK_M"] for t in tried} == {32, 64, 128, 256}


def test_what_spills_or_fails_is_dropped() -> None:
    kept = rank(
        [trial(64, 64, 0.5), trial(256, 256, 0.5, spills=8), trial(128, 128, 0.5, outcome=Outcome.OUT_OF_RESOURCES)], 32
    )
    assert [t.blocks["BLOCK_M"] for t in kept] == [64]


def test_a_larger_tile_loads_less_unless_nothing_hides_its_latency() -> None:
    """128x128 beats 64x64 at equal residency; with a single resident warp it does not."""
    assert rank([trial(64, 64, 0.5), trial(128, 128, 0.5)], 32)[0].blocks["BLOCK_M"] == 128
    assert rank([trial(64, 64, 0.5), trial(128, 128, 1 / 32)], 32)[0].blocks["BLOCK_M"] == 64


def test_more_warps_than_hide_a_load_promise_nothing() -> None:
    """What is tried first, the case's own blocks, stays first among equals; too few resident warps lose."""
    assert rank([trial(64, 64, 0.5), trial(64, 64, 1.0)], 32)[0].occupancy == 0.5
    assert rank([trial(64, 64, 1 / 32), trial(64, 64, 0.5)], 32)[0].occupancy == 0.5


def test_time_wins_over_the_model() -> None:
    assert rank([trial(64, 64, 0.5, ms=1.0), trial(128, 128, 0.5, ms=2.0)], 32)[0].blocks["BLOCK_M"] == 64


def test_an_entry_is_written_in_its_place_and_the_rest_stays(tmp_path: Path) -> None:
    """Comments and other entries are kept; a second write replaces the first."""
    table = tmp_path / "rocm.toml"
    table.write_text('# why\n[matmul."*"]\nBLOCK_M = 64  # small\n\n[softmax."*"]\nROW = 1\n')
    for size in (128, 256):
        text = entry("matmul", "hip:gfx942", {"BLOCK_M": size, "num_warps": 4}, {"num_warps": 4}, "a search")
        write_entry(table, "matmul", "hip:gfx942", text)
    found = tomllib.loads(table.read_text())
    assert found["matmul"] == {"*": {"BLOCK_M": 64}, "hip:gfx942": {"BLOCK_M": 256, "found": "a search"}}
    assert found["softmax"] == {"*": {"ROW": 1}}
    assert table.read_text().startswith('# why\n[matmul."*"]\nBLOCK_M = 64  # small\n')


FAMILIES = {"hip:wide": ("hip:a", "hip:b"), "hip:narrow": ("hip:c",)}


def test_targets_that_come_to_the_same_share_an_entry() -> None:
    """One entry for all of a backend, else one for a family, else one for a target."""
    few, many = ({"N": 1}, "a search"), ({"N": 2}, "a search")
    every = {"hip:a", "hip:b", "hip:c"}
    assert fold({"hip:a": few, "hip:b": few, "hip:c": few}, FAMILIES, every) == {"*": few}
    assert fold({"hip:a": few, "hip:b": few, "hip:c": many}, FAMILIES, every) == {"hip:wide": few, "hip:narrow": many}
    assert fold({"hip:a": few, "hip:b": many}, FAMILIES, every) == {"hip:a": few, "hip:b": many}
    assert fold({"hip:c": few}, FAMILIES, {"hip:c"}) == {"hip:c": few}, "nobody asked for more"


def test_an_entry_never_covers_a_target_that_was_not_searched() -> None:
    few = ({"N": 1}, "a search")
    assert fold({"hip:a": few, "hip:c": few}, FAMILIES, {"hip:a", "hip:b", "hip:c"}) == {
        "hip:narrow": few, "hip:a": few,
    }  # fmt: skip
    assert fold({"hip:a": few, "hip:c": few}, FAMILIES, {"hip:a", "hip:c"}) == {"*": few}
    every, kept = {"hip:a", "hip:b", "hip:c"}, {"hip:b": {"N": 1}}
    assert fold({"hip:a": few, "hip:c": few}, FAMILIES, every, kept) == {"*": few}, "it has these blocks already"
    assert set(fold({"hip:a": few, "hip:c": few}, FAMILIES, every, {"hip:b": {"N": 2}})) == {"hip:narrow", "hip:a"}


def test_an_entry_is_not_made_where_a_more_specific_one_decides() -> None:
    """Of entries the most specific wins, whether or not it names the dtype."""
    families = {"cdna": ("hip:gfx90a", "hip:gfx942"), "cdna3": ("hip:gfx942",)}
    targets = ("hip:gfx90a", "hip:gfx942", "hip:gfx1100")
    found = {t: ({"BLOCK_M": 32}, "search") for t in targets}
    assert set(fold(found, families, targets)) == {"*"}
    assert set(fold(found, families, targets, within={"hip:gfx90a": "cdna"})) == {"cdna", "hip:gfx1100"}
    of_family = dict.fromkeys(families["cdna"], "cdna")
    assert set(fold({t: found[t] for t in of_family}, families, of_family, within=of_family)) == {"cdna"}
    apart = {"hip:gfx90a": "hip:gfx90a", "hip:gfx942": "cdna3"}
    assert set(fold(found, families, targets, within=apart)) == {"hip:gfx90a", "cdna3", "hip:gfx1100"}


def test_a_broken_table_is_left_alone(tmp_path: Path) -> None:
    table = tmp_path / "rocm.toml"
    table.write_text("[matmul\n")
    with pytest.raises(ValueError, match=r"rocm\.toml"):
        write_entry(table, "matmul", "*", '[matmul."*"]\nA = 1\n')
    assert table.read_text() == "[matmul\n"


@pytest.mark.slow
def test_without_hardware_an_entry_is_printed_and_says_so(project: Callable[[str], Project]) -> None:
    """Every configuration is compiled, the ranking is said not to be measured, and what is printed is a table."""
    done = project("").portability("tune", "vector_add", "--target", "cuda:80", "--dtype", "float16", "--most", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "configurations, 0 do not work, 0 spill; not measured: ranked by a model of occupancy" in done.stdout
    printed = tomllib.loads(done.stdout[done.stdout.index("[vector_add") :])["vector_add"]["cuda:80/float16"]
    assert set(printed) == {"BLOCK_SIZE", "num_warps", "found"}
    assert printed["found"].startswith("search without hardware, Triton 3.")


class FakeHarness:
    """Two targets on which everything works, but that what `compiled` says spills."""

    def __init__(self, compiled: Callable[[Cell, Mapping[str, int]], int]) -> None:
        self.adapters, self.matrix, self.compiled = discover(), Matrix(), compiled
        case = CaseInfo("made_up", ("float32", "float16"), (SampleInfo("257", quick=True),),
                        blocks={"BLOCK_SIZE": 1024}, space={"BLOCK_SIZE": (256, 512, 1024)})  # fmt: skip
        found = (Target(t, t.partition(":")[0], evidence=Evidence.COMPILED) for t in ("cuda:80", "cuda:86"))
        self.catalogue = Catalogue((case,), tuple(found))

    def run_with(self, cell: Cell, target: Target, blocks: Mapping[str, int], source: str) -> Observation:
        resources = Resources("k", spills=self.compiled(cell, blocks), occupancy=1.0)
        return Observation(cell, target.evidence, Outcome.PASS, blocks=blocks, resources=(resources,))


@pytest.mark.parametrize(
    ("spills", "places"),
    [
        (lambda *_: 0, {"cuda:ampere"}),
        (lambda cell, blocks: int(cell.dtype == "float32" and blocks["BLOCK_SIZE"] > 256),
         {"cuda:ampere", "cuda:ampere/float32"}),
        (lambda cell, blocks: int(cell.dtype == "float32" and cell.target == "cuda:86" and blocks["BLOCK_SIZE"] > 256),
         {"cuda:ampere", "cuda:86/float32"}),
        (lambda cell, blocks: int((cell.dtype == "float32" or cell.target == "cuda:86") and blocks["BLOCK_SIZE"] > 256),
         {"cuda:80", "cuda:86", "cuda:80/float32"}),
    ],
)  # fmt: skip
def test_a_wide_dtype_gets_an_entry_where_that_of_the_others_does_not_fit_it(
    spills: Callable[[Cell, Mapping[str, int]], int], places: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    harness = FakeHarness(spills)
    args = argparse.Namespace(target=["cuda:80", "cuda:86"], dtype=None, missing=False, most=9, top=1, write=False)
    assert tune._of_case(cast(Any, harness), harness.catalogue.cases[0], args)
    out = capsys.readouterr().out
    printed = tomllib.loads("\n".join(re.findall(r"^\[.*\n(?:\w+ = .*\n)+", out, re.MULTILINE)))["made_up"]
    assert set(printed) == places
    assert printed.get("cuda:ampere", printed.get("cuda:80"))["BLOCK_SIZE"] == 1024
    assert all(printed[p]["BLOCK_SIZE"] == 256 for p in places if p.endswith("float32"))


def test_a_wide_dtype_that_nothing_fits_keeps_what_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    """An entry for all would change it too, to what does not fit it."""
    harness = FakeHarness(lambda cell, blocks: int(cell.dtype == "float32" or blocks["BLOCK_SIZE"] == 1024))
    args = argparse.Namespace(target=["cuda:80"], dtype=None, missing=False, most=9, top=1, write=False)
    assert not tune._of_case(cast(Any, harness), harness.catalogue.cases[0], args)
    out = capsys.readouterr().out
    printed = tomllib.loads("\n".join(re.findall(r"^\[.*\n(?:\w+ = .*\n)+", out, re.MULTILINE)))["made_up"]
    assert printed["cuda:80"]["BLOCK_SIZE"] < 1024
    kept = {"BLOCK_SIZE": 1024, "found": "as before a search in which nothing fitted"}
    assert printed["cuda:80/float32"] == kept


def test_a_search_is_with_a_dtype_of_16_bits_where_there_is_one() -> None:
    assert tune._by_width(("float32", "int8", "float16", "float64")) == (("float16", "int8"), ("float32", "float64"))
    assert tune._by_width(("float32", "int64")) == (("float32", "int64"), ())
    assert tune._by_width(("bool", "float8_e4m3fn")) == (("bool", "float8_e4m3fn"), ())
