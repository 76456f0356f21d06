"""FlagGems 5.0.2: `flash_mla` chooses its blocks by the first number of the compute capability alone.

flag_gems/fused/flash_mla.py takes BLOCK_H = 64 and 3 stages where it is 9, as on an H100. ROCm's PyTorch says (9, 4) of
an MI300X, where the kernel needs 81,920 B of 65,536 B of shared memory: OutOfResources. A B200, which says (10, 0), is
refused, though what an H100 launches compiles for it; and the refusal itself is a TypeError, since
`backend_not_support(device)` leaves an argument out. Needs flag_gems and such a GPU; without one,
`portability record --target hip:gfx942 -o mla.json -- flag_gems_flash_mla.py` and `portability check mla.json`.
"""

import os

import torch

os.environ.setdefault("GEMS_VENDOR", "amd" if torch.version.hip else "nvidia")

from flag_gems.fused import flash_mla

query = torch.randn(2, 1, 16, 576, device="cuda", dtype=torch.bfloat16)
pages = torch.randn(8, 64, 1, 576, device="cuda", dtype=torch.bfloat16)
table = torch.arange(8, device="cuda", dtype=torch.int32).view(2, 4)
lengths = torch.tensor([100, 101], device="cuda", dtype=torch.int32)
out = flash_mla(query, table, pages, 256, 64, 2, 1, lengths, 16, 1, 576, 512, True)
print("the output's shape is", tuple(out.shape))
