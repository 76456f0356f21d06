"""FlagGems 5.0.2: with Triton 3.7 and newer, a kernel's second launch leaves its constants out and shifts the rest.

`LibEntry.run` keeps a compiled kernel, and launches it the next time with the arguments that are no `tl.constexpr`
(flag_gems/utils/libentry.py: all of them only where `3 <= minor_version <= 6`). Triton's launcher goes by the kernel's
signature, in which constants have their places (triton/backends/nvidia/driver.c: `case ARG_CONSTEXPR: arg_idx++`).
Where a constant stands before other arguments, those are taken from one place too far, the last from past the end.
19 kernels of FlagGems are written so: attention, avg_pool2d, group_mm, isin, unique, cross_entropy_loss …

This shows the arguments of both launches. Needs flag_gems and a GPU.
"""

import os

os.environ.setdefault("GEMS_VENDOR", "nvidia")

import torch
import triton
import triton.language as tl
from flag_gems.utils import libentry


@libentry()
@triton.jit
def kernel(out, FIRST: tl.constexpr, value):
    tl.store(out, value + FIRST)


class Compiled:
    """Stands for the compiled kernel that LibEntry keeps."""

    def __getitem__(self, grid):
        """Return what would launch it."""
        return lambda *arguments: given.append(arguments)


given = []
kernel.fn.run = lambda *arguments, **_: given.append(arguments) or Compiled()
out = torch.empty(1)
kernel[(1,)](out, 10, 5)
kernel[(1,)](out, 10, 5)
first, second = given
print(f"Triton {triton.__version__}: the first launch has {len(first)} arguments, the second {len(second)}")
if len(second) != len(first):
    raise SystemExit("the launcher wants one argument for each name of the signature: out, FIRST, value")
