"""The Triton interpreter on the CPU, with right values and every access checked. It generates no CPU code."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

from portability.backend import FLOATS, INTEGERS, Backend, Limits, Session
from portability.model import Evidence, Target

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


class Interpreter(Backend):
    """One target, on every machine that has torch and Triton."""

    name = "interpreter"
    device = "cpu"
    targets = ("interpreter",)
    titles: ClassVar[Mapping[str, str]] = {"interpreter": "interpreter"}
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {"*": (*FLOATS, *FLOAT8, *INTEGERS, "uint16", "uint32", "uint64")}
    limits: ClassVar[Mapping[str, Limits]] = {  # of other targets' it warns
        "*": Limits(grid=(2**31 - 1,) * 3, source="none: programs run one after another, in the machine's memory")
    }

    def status(self) -> Sequence[Target]:
        """Return the one target: interpreted, where torch and Triton can be imported."""
        missing = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]
        if missing:
            why, remedy = f"{' and '.join(missing)} not installed", f"pip install {' '.join(missing)}"
            return [Target("interpreter", self.name, evidence=Evidence.NONE, why=why, remedy=remedy)]
        why = "no CPU code is generated: kernels are interpreted in numpy"
        return [Target("interpreter", self.name, evidence=Evidence.INTERPRETED, why=why, device="CPU")]

    def open(self, target: Target) -> AbstractContextManager[Session]:
        """Return a context in which kernels launched on CPU tensors are interpreted under the checks."""
        from portability.interpret import opened

        return opened(target)
