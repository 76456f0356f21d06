"""A session interprets whatever is launched in it, as the compiler would read it, and leaves Triton as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from portability.backend import GridError
from portability.interpret import Interpretation, KernelError, opened
from portability.model import Target

from . import interpreted as k

TARGET = Target("interpreter", "interpreter")


def added(n: int = 100) -> torch.Tensor:
    x = torch.arange(float(n))
    out = torch.zeros(n)
    with opened(TARGET):
        k.add[(2,)](x, x, out, n, BLOCK=64)
    return out


def state() -> dict[tuple[str, str], Any]:
    """Return every attribute of the language and of the classes that a session replaces."""
    holders = [tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.constexpr, JITFunction, Autotuner]
    return {(str(h), name): value for h in holders for name, value in vars(h).items()}


def compiled() -> str:
    source = ASTSource(k.plus_one, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {(1,): 64})
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.always_compile = True  # and not taken from the cache
        return str(triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"])


def test_a_session_leaves_nothing_behind() -> None:
    added()  # imports what it needs
    before = state()
    added()
    with pytest.raises(KernelError), opened(TARGET):
        k.not_a_power_of_two[(1,)](torch.zeros(96, dtype=torch.int32))
    after = state()
    assert before.keys() == after.keys()
    assert [key for key in before if before[key] is not after[key]] == []
    assert "interpreter_semantic" not in vars(k)


def test_the_process_compiles_before_and_after() -> None:
    before = compiled()
    assert torch.equal(added(), torch.arange(100.0) * 2)
    assert compiled() == before


def test_the_session_records_launches() -> None:
    with opened(TARGET) as session:
        k.add[(2, 1)](torch.ones(4), torch.ones(4), torch.ones(4), 4, BLOCK=64, num_warps=8)
    (launch,) = session.launches
    assert (launch.kernel, launch.grid, launch.num_warps) == ("add", (2, 1), 8)
    assert launch.constants == {"BLOCK": 64}
    assert launch.options == {"num_warps": 8}
    assert launch.file.endswith("engine/interpreted.py")
    assert launch.line == k.add.fn.__code__.co_firstlineno + 1


def test_a_grid_may_be_a_function_of_the_arguments() -> None:
    with opened(TARGET) as session:
        k.add[lambda args: (triton.cdiv(args["n"], args["BLOCK"]),)](*[torch.ones(100)] * 3, 100, BLOCK=64)
    assert session.launches[0].grid == (2,)


@pytest.mark.parametrize(
    ("grid", "why"),
    [(4, "of type int: a tuple"), ((), "a tuple of whole numbers"), ((2.0,), "axis 0 of the grid is 2.0")],
)
def test_a_grid_that_no_launcher_takes_is_refused(grid: Any, why: str) -> None:
    with opened(TARGET), pytest.raises(GridError, match=why):
        k.add[grid](*[torch.ones(100)] * 3, 100, BLOCK=64)


def test_statements_are_read_as_the_compiler_reads_them() -> None:
    x = torch.tensor([-9.0, 0.5, 1.0, 9.0])
    out = torch.zeros(4)
    with opened(TARGET) as session:
        k.control[(1,)](x, out, 5, LOW=-1.0, BLOCK=4)
    assert session.problems == []
    assert torch.equal(out, x.clamp(-1, 2) + 1 + 5)  # of 1 and 3 the loop leaves 1; the other loop counts to 5


def test_a_loop_variable_has_32_bits() -> None:
    out = torch.zeros(1, dtype=torch.int64)
    with opened(TARGET) as session:
        k.wraps_loop_variable[(1,)](out, 2**31 - 1)
    assert [w.code for w in session.warnings] == ["int-overflow"]
    assert out.item() == -4


def test_ranges_take_keywords_and_options_of_the_launch_are_visible() -> None:
    out = torch.zeros(8, dtype=torch.int32)
    with opened(TARGET):
        k.stepped[(1,)](out, num_warps=2)
    assert out.tolist() == [2, 1, 0, 0, 2, 0, 0, 7]


def test_assertions_hold_where_a_launch_asks_for_debugging() -> None:
    x = torch.zeros(1)
    with opened(TARGET):
        k.asserted[(1,)](x)
        with pytest.raises(KernelError, match="not positive"):
            k.asserted[(1,)](x, debug=True)


def test_constants_are_read_as_the_compiler_reads_them() -> None:
    out = torch.zeros(4, dtype=torch.int32)
    with opened(TARGET):
        k.constants[(1,)](out, BLOCK=8)
    assert out.tolist() == [3, 6, 9, 12]


def test_a_kernel_may_close_over_variables() -> None:
    x = torch.ones(4)
    with opened(TARGET):
        k.closing_over(tl.constexpr(3.0))[(1,)](x, BLOCK=4)  # type: ignore[no-untyped-call]
    assert x.tolist() == [3.0] * 4


def test_heuristics_apply() -> None:
    x = torch.zeros(5, dtype=torch.int32)
    with opened(TARGET):
        k.heuristic[(1,)](x, 5)
    assert x.tolist() == [0, 1, 2, 3, 4]


def tuned(kernel: Any, configs: str) -> tuple[float, Interpretation]:
    out = torch.zeros(1)
    with opened(TARGET) as session:
        session.configs = configs
        kernel[lambda args: (triton.cdiv(256, args["BLOCK"]),)](torch.ones(256), out, 256)
    return out.item(), session


def test_autotune_takes_the_first_configuration() -> None:
    total, session = tuned(k.tuned_sum, "first")
    assert total == 256
    assert [launch.constants for launch in session.launches] == [{"BLOCK": 64}]
    assert "BLOCK: 64" in session.launches[0].config


def test_all_configurations_in_turn_show_what_tuning_does_to_an_output() -> None:
    assert tuned(k.tuned_sum, "all")[0] == 3 * 256
    total, session = tuned(k.tuned_sum_reset, "all")
    assert total == 256
    assert [launch.constants["BLOCK"] for launch in session.launches] == [64, 128, 64]
    assert tuned(k.tuned_sum_restored, "all")[0] == 256


def test_a_sampled_grid_runs_the_ends_and_says_so() -> None:
    out = torch.zeros(100)
    with opened(TARGET) as session:
        session.sample_grid = 5
        k.mark[(100,)](out)
    assert [w.code for w in session.warnings] == ["sampled-grid"]
    assert torch.nonzero(out).flatten().tolist() == [0, 25, 50, 74, 99]


def test_tensors_on_another_device_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="x_ptr: a tensor on meta"), opened(TARGET):
        k.add[(1,)](*[torch.ones(4, device="meta")] * 3, 4, BLOCK=4)


def warned(**options: Any) -> dict[str, tuple[str, ...]]:
    grid = options.pop("grid", (1,))
    with opened(TARGET) as session:
        session.sample_grid = 1
        k.flag[grid](torch.zeros(1, dtype=torch.int32), **options)
    return {w.code: w.targets for w in session.warnings if w.code != "sampled-grid"}


def test_threads_beyond_a_wave_of_64_are_named_with_their_targets() -> None:
    targets = warned(num_warps=32)["threads"]
    assert "hip:gfx942" in targets
    assert "cuda:90" not in targets


def test_a_long_grid_axis_is_named_with_its_targets() -> None:
    assert "cuda:90" in warned(grid=(1, 65536))["grid-limit"]


def test_an_empty_grid_is_named_with_its_targets() -> None:
    assert "npu:Ascend910B3" in warned(grid=(0,))["grid-empty"]


def test_an_option_that_a_target_does_not_know() -> None:
    targets = warned(waves_per_eu=2)["unknown-option"]
    assert "cuda:90" in targets
    assert "hip:gfx942" not in targets


def test_a_plain_launch_is_no_cause_for_warnings() -> None:
    assert warned(num_warps=4, num_stages=2) == {}
