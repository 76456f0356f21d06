"""fla-core 0.6.0: the gradient of `fused_grpo_loss` wants 2048 threads on AMD's CDNA, where a block has 1024.

`grpo_bwd_kernel` (fla/modules/grpo/ops.py) has one configuration, with 32 warps: 1024 threads on NVIDIA and on RDNA,
twice that where a wave has 64 lanes. Needs fla-core and such a GPU; without one,
`portability record --target hip:gfx942 -o grpo.json -- fla_grpo_warps.py` and `portability check grpo.json`.
"""

import torch
from fla.modules.grpo import fused_grpo_loss

logits = torch.randn(2, 65, 32000, device="cuda", dtype=torch.bfloat16, requires_grad=True)
reference, advantages = torch.randn(2, 64, device="cuda"), torch.randn(2, device="cuda")
ids = torch.randint(0, 32000, (2, 64), device="cuda")
fused_grpo_loss(logits, reference, ids, advantages).sum().backward()
print("the gradient's shape is", tuple(logits.grad.shape))
