"""The probes are complete: a name of the installed language without one fails, so that a new Triton shows it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import cuda, hip, libdevice
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from portability import compare
from portability.kernel import Discovered, Draw, KernelCase, discover
from portability.kernels.api._probe import BASIC

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
OPERATORS = [
    *(f"__{reflected}{name}__" for name in (*BINARY, *COMPARISONS) for reflected in ("", "r")),
    *("__neg__", "__invert__", "__not__", "__getitem__"),
]


@cache
def found() -> Discovered:
    return discover()


def probes() -> dict[str, KernelCase]:
    return {name: case for name, case in found().cases.items() if case.group}


def without_probe(names: Iterable[str], cases: Iterable[KernelCase]) -> list[str]:
    """Return those of `names` that no case is about."""
    probed = {name for case in cases for name in case.names}
    return sorted(set(names) - probed)


def public(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def functions(module: Any) -> list[str]:
    return [name for name, value in inspect.getmembers(module, callable) if not name.startswith("_")]


def language() -> list[str]:
    return [f"tl.{name}" for name in tl.__all__]


def test_every_module_of_probes_can_be_imported() -> None:
    assert not {m: e for m, e in found().errors.items() if ".api" in m}


def test_every_name_of_the_language_has_a_probe() -> None:
    assert without_probe(language(), probes().values()) == []


def test_every_function_of_libdevice_has_a_probe() -> None:
    assert without_probe([f"libdevice.{n}" for n in functions(libdevice)], probes().values()) == []


def test_every_method_and_operator_of_a_tensor_has_a_probe() -> None:
    methods = [*public(tl.tensor), *(name for name in OPERATORS if hasattr(tl.tensor, name))]
    assert without_probe([f"tensor.{name}" for name in methods], probes().values()) == []


def test_every_method_of_a_descriptor_has_a_probe() -> None:
    methods = [n for n, f in inspect.getmembers(tl.tensor_descriptor, inspect.isfunction) if not n.startswith("_")]
    assert without_probe([f"tensor_descriptor.{name}" for name in methods], probes().values()) == []


@pytest.mark.parametrize("vendor", [cuda, hip], ids=["cuda", "hip"])
def test_every_function_of_a_vendor_has_a_probe(vendor: Any) -> None:
    names = [n for n in functions(vendor) if not n.startswith("convert_fp8")]
    prefix = f"tl.extra.{vendor.__name__.rpartition('.')[2]}"
    assert without_probe([f"{prefix}.{name}" for name in names], probes().values()) == []


@pytest.mark.parametrize("name", ["tl.exp", "tl.dot_scaled", "tl.float8e4b15", "tl.tensor_descriptor"])
def test_a_name_that_is_taken_out_is_missed(name: str) -> None:
    """The check above would see it, or it would check nothing."""
    others = [case for case in probes().values() if name not in case.names]
    assert name in without_probe(language(), others)


def test_the_basic_set_is_there_and_stays_small() -> None:
    """A run without --full takes these: about 25, each of which exists."""
    assert {name for name, case in probes().items() if case.basic} == BASIC
    assert 20 <= len(BASIC) <= 35


def test_every_probe_has_a_group_and_says_what_it_is_about() -> None:
    assert [name for name, case in found().cases.items() if bool(case.group) != bool(case.names)] == []


def test_a_probe_names_in_its_source_what_it_is_about() -> None:
    """A probe that claims a name and asks something else would fill a row with nothing."""
    text: dict[str, str] = {}
    silent = []
    for name, case in probes().items():
        file = found().files[name]
        text.setdefault(file, Path(file).read_text())
        for last in (claimed.removeprefix("tl.") for claimed in case.names if re.fullmatch(r"tl\.\w+", claimed)):
            if not re.search(rf"\btl\.{last}\b(?!\")|\"{last}\"", text[file]):
                silent.append(f"{name}: tl.{last} is not in {Path(file).name}")
    assert silent == []


def test_every_reference_has_the_shapes_of_its_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators run without their kernels: what they allocate must be what the reference gives, in every dtype."""
    for launched in (JITFunction, Autotuner):
        monkeypatch.setattr(launched, "run", lambda *_, **__: None)
    wrong = []
    for name, case in probes().items():
        for dtype in case.dtypes:
            inputs = case.samples[0].inputs(Draw(getattr(torch, dtype), case.blocks, seed=0))
            outputs = compare.outputs_of(case.operator(*inputs, blocks=case.blocks))
            expected = compare.expect(case, inputs, [o.dtype for o in outputs])
            shapes = [tuple(o.shape) for o in outputs], [tuple(e.values.shape) for e in expected]
            if shapes[0] != shapes[1]:
                wrong.append(f"{name} {dtype}: {shapes[0]} and {shapes[1]}")
    assert wrong == []


def test_probes_are_small() -> None:
    """A probe asks one question: few elements, so that the interpreter answers it in milliseconds."""
    large = []
    for name, case in probes().items():
        inputs = case.samples[0].inputs(Draw(getattr(torch, case.dtypes[0]), case.blocks, seed=0))
        largest = max(x.numel() for x in inputs if isinstance(x, torch.Tensor))
        if largest > 128 * 128:
            large.append(f"{name}: {largest} elements")
    assert large == []


def test_every_probe_takes_a_tensor() -> None:
    """Outputs are made on the device of the inputs; a probe without one would run on the CPU only."""
    for name, case in probes().items():
        inputs = case.samples[0].inputs(Draw(getattr(torch, case.dtypes[0]), case.blocks, seed=0))
        assert isinstance(inputs[0], torch.Tensor), name


def test_the_installed_triton_is_one_that_the_probes_were_written_for() -> None:
    assert tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 6)
