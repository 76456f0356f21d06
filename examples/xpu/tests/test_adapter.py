"""The adapter as a distribution of its own: what it brings, and what it says where its compiler is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib
from portability_xpu.recipe import XPU
from portability_xpu.xpu import Xpu

from portability.backend import read_blocks
from portability.environments import Recipe
from portability.model import Evidence

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


def test_its_entry_points_are_an_adapter_and_a_recipe() -> None:
    points = PROJECT["entry-points"]
    assert points["portability.backends"] == {"xpu": Xpu.__module__}
    assert points["portability.environments"] == {"xpu": f"{Recipe.__module__.split('.')[0]}_xpu.recipe:XPU"}


def test_its_environment_is_pinned_and_is_the_one_that_the_adapter_names() -> None:
    assert XPU.name == Xpu.environment
    assert all("==" in package for package in (XPU.triton, *XPU.packages))


def test_without_triton_xpu_it_is_unavailable_and_says_how_to_get_it() -> None:
    pytest.importorskip("triton")
    found = Xpu().status()
    assert [t.id for t in found] == ["xpu:pvc", "xpu:dg2"]
    assert {t.evidence for t in found} == {Evidence.NONE}
    assert {t.remedy for t in found} == {"portability env create xpu"}


def test_double_precision_is_claimed_where_the_hardware_has_it() -> None:
    assert Xpu().claims("xpu:pvc", "float64")
    assert not Xpu().claims("xpu:dg2", "float64")


def test_limits_and_devices_are_stated_for_every_target() -> None:
    for target in Xpu.targets:
        assert Xpu().limits_of(target).source
        assert target in Xpu.devices


def test_the_block_table_names_targets_and_families_that_are_there() -> None:
    known = {"*", *Xpu.targets, *Xpu.families}
    for entries in read_blocks(Xpu().block_table()).values():
        assert {s.partition("/")[0] for s in entries} <= known
