"""FlagGems 5.0.2: `bitwise_left_shift` and `bitwise_right_shift` cannot be called without `out`.

They hand `out=None` on to a kernel of `pointwise_dynamic`, which takes a keyword that is there for an output that was
given (flag_gems/ops/bitwise_left_shift.py). Needs flag_gems and a GPU.
"""

import flag_gems
import torch

x = torch.arange(8, device="cuda")
print(flag_gems.bitwise_left_shift(x, x))
