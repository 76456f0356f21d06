"""mamba-ssm 2.3.2.post1: `selective_state_update` cannot be called with its own defaults.

`D` and `dt_bias` are None by default; without one the launch unpacks a number, `*(…) if D is not None else 0`. Needs
mamba-ssm, of which the Triton files are enough, and a GPU, or `portability record -- mamba_state_update_defaults.py`.
"""

import importlib.util
import sys
import types

import torch

try:
    import selective_scan_cuda  # noqa: F401 - the extension that `import mamba_ssm` wants
except ImportError:
    folder = list(importlib.util.find_spec("mamba_ssm").submodule_search_locations)
    sys.modules["mamba_ssm"] = types.ModuleType("mamba_ssm")
    sys.modules["mamba_ssm"].__path__ = folder
from mamba_ssm.ops.triton.selective_state_update import selective_state_update

batch, dim, states = 2, 64, 16
state = torch.zeros(batch, dim, states, device="cuda")
x, dt = (torch.rand(batch, dim, device="cuda") for _ in range(2))
A, (B, C) = -torch.rand(dim, states, device="cuda"), (torch.rand(batch, states, device="cuda") for _ in range(2))
print("the output's shape is", tuple(selective_state_update(state, x, dt, A, B, C).shape))
