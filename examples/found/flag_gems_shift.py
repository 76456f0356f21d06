"""FlagGems 5.0.2: `bitwise_left_shift` and `bitwise_right_shift` cannot be called without `out`.

They hand `out=None` on to a kernel of `pointwise_dynamic`, which takes a keyword that is there for an output that was
given (flag_gems/ops/bitwise_left_shift.py). Needs flag_gems and a GPU.
"""

import os

import torch

os.environ.setdefault("GEMS_VENDOR", "amd" if torch.version.hip else "nvidia")

import flag_gems

x = torch.arange(8, device="cuda")
print(flag_gems.bitwise_left_shift(x, x))
