"""Launches into nothing, for recording on a machine without the device: nothing is compiled, and nothing is computed.

Triton binds the arguments, chooses the specialisation and checks the options as ever. Where it would compile, it is
given a kernel that compiles only when a program asks for what a binary alone can tell (its registers, its assembly).
Comparisons of values hold, so that a test goes on to its next launch: that it passes says nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

from portability.backend import discover
from portability.checks.pretend import pretend, replaced
from portability.device import UNITS, DeviceBackend
from portability.ghost import compile_only, driven
from portability.launch import private_tuning
from portability.record import inductor
from portability.record.inductor import variables

TIMES = itertools.count()  # a recording finds no kernel specialised that an earlier one in this process stood for
FUSION = "TRITON_DEFAULT_FP_FUSION"


def adapter_of(target: str) -> DeviceBackend:
    """Return the adapter whose target it is. Raises `ValueError` naming the choices."""
    adapters = [a for a in discover().values() if isinstance(a, DeviceBackend)]
    for adapter in adapters:
        if target in adapter.targets:
            return adapter
    known = ", ".join(t for a in adapters for t in a.targets)
    raise ValueError(f"target {target!r} is none that launches can be recorded for; there are {known}")


@contextlib.contextmanager
def into_nothing(target: str) -> Iterator[None]:
    """Let a program believe that `target` is here, and launch into nothing."""
    adapter = adapter_of(target)
    limits = adapter.limits_of(target)
    with (
        driven(adapter.gpu_target(target), limits, limits.units or UNITS, kind=f"record {next(TIMES)}"),
        _uncompiled(),
        _equal(),
        variables({FUSION: os.environ.get(FUSION, "1")}),  # Triton 3.9 warns where nobody chooses; as runners do
        pretend(adapter, target),
        inductor.into_nothing(adapter.device),
    ):
        yield


@contextlib.contextmanager
def _equal() -> Iterator[None]:
    """Have comparisons of values hold: none was computed, and a test that stops at the first launches no more."""
    import numpy.testing
    import torch
    import triton.testing

    def holds(*_: Any, **__: Any) -> bool:
        return True

    def nothing(*_: Any, **__: Any) -> None:
        return None

    with contextlib.ExitStack() as stack:
        for place, names, answer in (
            (torch.testing, ("assert_close", "assert_allclose"), nothing),
            (torch, ("allclose", "equal"), holds),
            (torch.Tensor, ("allclose", "equal"), holds),
            (numpy.testing, ("assert_allclose", "assert_array_equal", "assert_equal"), nothing),
            (triton.testing, ("assert_close",), nothing),
            (triton.testing, ("do_bench", "do_bench_cudagraph"), _called_once),
        ):
            stack.enter_context(replaced(place, {n: answer for n in names if hasattr(place, n)}))
        yield


def _called_once(call: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """A benchmark where there is nothing to time: a millisecond, whatever is asked for."""
    call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


class Uncompiled:
    """What stands for a compiled kernel until someone asks for what only a binary has."""

    function = packed_metadata = None

    def __init__(self, source: Any, compile_it: Callable[[], Any]) -> None:
        self.src = source
        self._compile, self._made = compile_it, None

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> None:
        """Nothing is launched."""

    def run(self, *args: Any) -> None:
        """Nothing is launched."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, stream=None: self.launch_metadata(grid, stream, *args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "result":  # `result`: of a compile that goes on elsewhere
            raise AttributeError(name)
        if self._made is None:
            self._made = self._compile()
        return getattr(self._made, name)


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Have kernels specialised and not compiled, and autotuning try each configuration once."""
    from triton import testing
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    plain_compile, plain_tune, plain_bench = JITFunction._do_compile, Autotuner.run, testing.do_bench

    def specialise(kernel: Any, key: Any, signature: Any, device: Any, constants: Any, options: Any, *rest: Any) -> Any:
        attrs = rest[0]
        cache, _, target, _, _ = kernel.device_caches[device]
        source = kernel.ASTSource(kernel, signature, constants, attrs)
        made = Uncompiled(source, lambda: kernel.compile(source, target=target, options=options.__dict__))
        cache[key] = made
        return made

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        with private_tuning(tuner, [""], ghostly=True):
            return plain_tune(tuner, *args, **kwargs)

    JITFunction._do_compile, Autotuner.run, testing.do_bench = specialise, tune, _bench
    try:
        yield
    finally:
        JITFunction._do_compile, Autotuner.run, testing.do_bench = plain_compile, plain_tune, plain_bench


def _bench(call: Callable[[], Any], *_: Any, quantiles: Any = None, return_mode: str = "mean", **__: Any) -> Any:
    """Stand for `triton.testing.do_bench`, which the tuners of libraries call by themselves."""
    times = compile_only(call, quantiles)
    return times if quantiles or return_mode == "all" else times[0]
