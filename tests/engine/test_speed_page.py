"""The page of speeds holds the figures of the committed run, and says what falls short."""

from __future__ import annotations

import importlib.util
import json
from argparse import Namespace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from portability.pages import between
from tests.engine.test_timing import FakeDevice

ROOT = Path(__file__).parents[2]


def loaded(name: str) -> ModuleType:
    """Return a script of benchmarks/ as a module."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    return loaded("kernels")


def test_the_page_is_in_step_with_the_results(kernels: ModuleType) -> None:
    made = json.loads((ROOT / "results" / "kernels.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert kernels.render(made) in page


def test_a_row_names_each_figure_that_it_falls_short_of(kernels: ModuleType) -> None:
    row = {"ms": 2.0, "ceiling": 0.5, "asked": {"fast": 1.0, "slow": 1.0, "gone": 1.0, "ceiling": 0.8}}
    row["peers"] = {"fast": {"ms": 1.0}, "slow": {"ms": 4.0}, "gone": {"error": "ImportError"}}
    assert kernels.short_of(row) == [
        "0.50 of 1 asked against fast",
        "gone was not timed",
        "0.50 of 0.8 asked against ceiling",
    ]


def test_a_group_is_asked_for_its_mean(kernels: ModuleType) -> None:
    timed = [{"name": "a", "ms": 2.0, "p20": 2.0, "p80": 2.0, "method": "launch", "gbps": None, "ceiling": None}]
    timed = [row | {"group": "pairs", "asked": {"peer": 0.95}, "peers": {"peer": {"ms": ms}}}
             for row in timed for ms in (1.0, 4.0)]  # fmt: skip
    made = {"device": "d", "torch": "t", "triton": "3", "copy_gbps": 1.0, "rows": timed, "overhead": []}
    text = kernels.render(made)
    assert "asked against" not in text
    assert "Geometric mean of 2 pairs: 1.000 of peer, where 0.95 is asked." in text


def test_ours_and_its_peers_are_timed_in_turn(kernels: ModuleType) -> None:
    """A device that slows down as it works meets all of a row alike."""

    class Slowing(FakeDevice):
        def _execute(self) -> None:
            super()._execute()
            self.clock += self.clock / 1e4

    device = Slowing(cold=0.5)
    same = SimpleNamespace(
        name="same", group="", ours=device.call, peers={"itself": device.call}, asked={}, cost=None, memory=False
    )
    row = kernels._row(device, same, Namespace(warmup=25.0, rep=100.0))
    assert kernels.ratios(row) == {"itself": pytest.approx(1.0, abs=0.03)}
    assert row["ms"] > 0.52  # it did slow down


@pytest.mark.parametrize("calls", [0, 3, 30])
@pytest.mark.parametrize("device", [FakeDevice(cold=0.5), FakeDevice(cold=0.01), FakeDevice(host_wobble=(0.1, 0.9))])
def test_a_peer_that_raises_leaves_the_others_their_figures(
    kernels: ModuleType, device: FakeDevice, calls: int
) -> None:
    """Whenever it does: at once, while it is captured, or in a later round."""
    left = iter(range(calls))

    def failing() -> None:
        if next(left, None) is None:
            raise LookupError("no more")
        device.call()

    work = SimpleNamespace(
        name="w",
        group="",
        ours=device.call,
        peers={"bad": failing, "good": device.call},
        asked={},
        cost=None,
        memory=False,
    )
    row = kernels._row(device, work, Namespace(warmup=25.0, rep=100.0))
    assert row["peers"]["bad"] == {"error": "LookupError: no more"}
    assert kernels.ratios(row)["good"] == pytest.approx(1.0, abs=0.1)


def test_what_cannot_be_replayed_is_compared_with_launches(kernels: ModuleType) -> None:
    """A peer that waits for the device holds the host's part; so must ours, beside it."""
    row = {
        "name": "a",
        "group": "",
        "ms": 1.0,
        "p20": 1.0,
        "p80": 1.0,
        "method": "graph",
        "launch_ms": 2.0,
        "gbps": None,
    }
    row |= {"asked": {"waits": 1.0}, "peers": {"waits": {"ms": 3.0, "method": "launch"}, "b": {"ms": 3.0}}}
    assert kernels.ratios(row) == {"waits": 1.5, "b": 3.0}
    text = kernels.render({"device": "d", "torch": "t", "triton": "3", "copy_gbps": 1.0, "rows": [row], "overhead": []})
    assert "waits 1.50 (both launched), b 3.00" in text


def test_the_page_of_kernels_holds_the_committed_run_of_the_layer() -> None:
    layer = loaded("decoder_layer")
    made = json.loads((ROOT / "results" / "decoder_layer.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    assert between(page, layer.BEGIN, layer.END, layer.render(made), "kernels.md") == page


@pytest.mark.parametrize("page", ["nothing here\n", "<b>", "<b> <e> <b> <e>", "<e> <b>"])
def test_a_page_without_one_place_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"page\.md: needs <b> and after it <e>, once each"):
        between(page, "<b>", "<e>", "text", "page.md")
