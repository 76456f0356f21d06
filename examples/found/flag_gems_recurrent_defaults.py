"""FlagGems 5.0.2: `fused_recurrent_gated_delta_rule_fwd` cannot be called with its own defaults.

`cu_seqlens` is None by default, and the arguments of a debug message take its shape. Where it is given, the kernel does
not compile: by default the final state is written in place (`inplace_final_state=True`), at a place that the kernel
loads from `ssm_state_indices`, which is None (flag_gems/fused/FLA/fused_recurrent.py). Needs flag_gems and a GPU.
"""

import os

import torch

os.environ.setdefault("GEMS_VENDOR", "amd" if torch.version.hip else "nvidia")

from flag_gems.fused import fused_recurrent_gated_delta_rule_fwd

q, k, v = (torch.randn(2, 128, 4, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
g, beta = torch.zeros(2, 128, 4, device="cuda"), torch.ones(2, 128, 4, device="cuda", dtype=torch.bfloat16)
state = torch.zeros(2, 4, 64, 64, device="cuda")
out, _ = fused_recurrent_gated_delta_rule_fwd(q, k, v, g, beta, 0.125, state)
print("the output's shape is", tuple(out.shape))
