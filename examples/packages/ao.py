"""torchao: the operators that launch Triton kernels of its own, on small tensors.

A row of the table is what is called and with which arguments, as Python; each module is imported when it is first
asked for. A module or an operator that fails is reported by its name and hides no other; the exit code is 1 then.
"""

# ruff: noqa: E501 - a row of the table is a line
import sys
from importlib import import_module  # noqa: F401 - in the calls

import torch
import torchao
from torchao.float8.float8_training_tensor import LinearMMConfig  # noqa: F401
from torchao.kernel.intmm_triton import int8_mm_kernel_configs  # noqa: F401

SIDE = 256


def real(*shape, dtype=torch.bfloat16):
    return torch.randn(*(shape or (SIDE, SIDE)), device="cuda", dtype=dtype)


def fp8(*shape):
    return real(*shape).to(torch.float8_e4m3fn)


def scales(*shape):
    return torch.rand(*shape, device="cuda")


def whole(*shape, low=-8, high=8, dtype=torch.int8):
    return torch.randint(low, high, shape or (SIDE, SIDE), device="cuda", dtype=dtype)


def heads():
    return real(2, 4, 256, 64), real(2, 4, 256, 64), real(2, 4, 256, 64)


def angles():
    return scales(256, 64), scales(256, 64)


def ends():
    """Where each of 4 groups of tokens ends."""
    return torch.arange(64, SIDE + 1, 64, device="cuda", dtype=torch.int32)


OPERATORS = {
    "kernel.blockwise_quantization": {
        "real()": "fp8_blockwise_act_quant fp8_blockwise_weight_quant",
        "fp8(), scales(2, 2)": "fp8_blockwise_weight_dequant",
        "fp8(), scales(256, 2), fp8(), scales(2, 2)": "blockwise_fp8_gemm",
    },
    "kernel.intmm_triton": {
        "whole(), whole(), whole().int(), int8_mm_kernel_configs[0]": "int_matmul_kernel",
        "whole(), whole(), scales(256, 1), scales(256, 256), int8_mm_kernel_configs[0]": "int_scaled_matmul_kernel",
    },
    "kernel.bsr_triton_ops": {
        "real(), real().to_sparse_bsr((32, 32)), real()": "bsr_dense_addmm",
    },
    "prototype.quantized_training.int8_mm": {
        "whole(), whole(), scales(256), scales(256)": "scaled_int8_mm_cuda",
    },
    "prototype.hqq.mixed_mm": {
        "real(), whole(128, 256).to(torch.uint8), real(4, 256), real(4, 256), 64": "triton_mixed_mm",
        "real(), whole(128, 256).to(torch.uint8), real(4, 256), real(4, 256), 64, transposed=True": "triton_mixed_mm",
        "real(), whole(128, 256).to(torch.uint8), real(4, 256), real(4, 256), 64, kernel_type='max_autotune'": "triton_mixed_mm",
    },
    "prototype.attention.quantization.triton_qkv_quantization": {
        "*heads()": "triton_fp8_sdpa_quantize",
    },
    "prototype.attention.quantization.triton_hadamard_qkv_quantization": {
        "*heads()": "triton_fp8_hadamard_sdpa_quantize",
        "*heads(), v_only=True": "triton_fp8_hadamard_sdpa_quantize",
    },
    "prototype.attention.quantization.triton_rope_qkv_quantization": {
        "*(t.transpose(1, 2) for t in heads()), *angles()": "triton_fp8_rope_sdpa_quantize",
    },
    "prototype.attention.quantization.triton_hadamard_rope_qkv_quantization": {
        "*(t.transpose(1, 2) for t in heads()), *angles()": "triton_fp8_hadamard_rope_sdpa_quantize",
    },
    "prototype.attention.quantization.triton_hadamard_utils": {
        "heads()[0]": "inverse_hadamard_transform",
    },
    "prototype.fp8_sdpa_inference.fp8_sdpa_quantization": {
        "*heads()": "qkv_quantize_func fp8_sdpa_quantize_func",
        "heads()[0]": "q_quantize_func",
        "*heads()[:2]": "kv_quantize_func",
    },
    "prototype.mx_formats.kernels": {
        "fp8(), whole(256, 8, low=100, high=140, dtype=torch.uint8).view(torch.float8_e8m0fnu), torch.bfloat16": "triton_mxfp8_dequant_dim0",
        "whole(256, 8, low=100, high=140, dtype=torch.uint8)": "triton_mx_block_rearrange",
        "real()": "triton_to_mxfp8_dim0 triton_to_mxfp8_dim1",
        "real(), scaling_mode='floor'": "triton_to_mxfp8_dim0 triton_to_mxfp8_dim1",
    },
    "prototype.blockwise_fp8_training.kernels": {
        "real()": """triton_fp8_blockwise_act_quant_lhs triton_fp8_blockwise_act_quant_rhs
            triton_fp8_blockwise_act_quant_transposed_lhs triton_fp8_blockwise_weight_quant_rhs
            triton_fp8_blockwise_weight_quant_transposed_rhs""",
        "fp8(), fp8().t(), scales(2, 256).t(), scales(2, 2).t()": "triton_fp8_gemm_1x128_128x128",
        "fp8(), fp8().t(), scales(2, 256).t(), scales(2, 256)": "triton_fp8_gemm_1x128_128x1",
    },
    "prototype.blockwise_fp8_training.deepgemm_quant": {
        "real(4, 256, 256).transpose(1, 2)": "triton_fp8_blockwise_weight_quant_grouped_transposed_rhs_deepgemm triton_fp8_blockwise_weight_quant_grouped_rhs_deepgemm",
        "real(512, 256), 2 * ends()": "triton_fp8_blockwise_act_quant_k_grouped_deepgemm",
    },
    "prototype.float8nocompile.kernels.fp8_dynamic_tensorwise": {
        "real(), torch.float8_e4m3fn, LinearMMConfig()": """hp_to_fp8_row_major hp_to_fp8_row_major_t hp_to_fp8_col_major
            hp_to_fp8_col_major_t hp_to_fp8_row_and_col_major hp_to_fp8_row_major_t_and_non_t hp_to_fp8_col_major_t_and_non_t""",
        "real(), torch.float8_e4m3fn, LinearMMConfig(), algo=module.KernelAlgorithm.REDUCTION": "hp_to_fp8_row_major",
    },
    "prototype.moe_training.kernels.float8_rowwise": {
        "real(4, 256, 256)": "triton_fp8_rowwise_3d_transpose_rhs triton_fp8_rowwise_3d_transpose_rhs_fused_reduction",
        "real(4, 256, 256).transpose(1, 2)": "triton_fp8_colwise_3d_scale_and_cast",
        "real()": "triton_fp8_rowwise_2d_scale_and_cast",
    },
    "prototype.moe_training.kernels.jagged_float8_scales": {
        "real(), ends()": "triton_fp8_per_group_rowwise_scales",
        "real().t(), ends()": "triton_fp8_per_group_colwise_scales",
    },
    "prototype.moe_training.kernels.mxfp8.quant": {
        "whole(256, 8, dtype=torch.uint8, low=100, high=140), ends()": "triton_mx_block_rearrange_2d_M_groups triton_mx_block_rearrange_2d_K_groups",
        "whole(4, 256, 8, dtype=torch.uint8, low=100, high=140)": "triton_mx_block_rearrange_per_group_3d",
    },
    "prototype.moe_training.ep.kernels": {
        "whole(16, low=1, dtype=torch.int32), 4, 4, 512, 16": "generate_permute_indices",
    },
    "prototype.moe_training.nvfp4_training.quantize_2d_triton": {
        "real(), scales(1)": "triton_weight_quantize_2d",
    },
    "prototype.moe_training.nvfp4_training.hadamard_amax_triton": {
        "real()": "triton_rht_amax",
    },
    "prototype.moe_training.nvfp4_training.hadamard_quantize_row_col_triton": {
        "real(), scales(1), scales(1)": "triton_rht_quantize_row_col",
    },
}


called = failed = 0
for place, rows in OPERATORS.items():
    calls = [f"import_module('torchao.{place}')"]
    calls += [f"module.{name}({arguments})" for arguments, names in rows.items() for name in names.split()]
    module = None
    for call in calls:
        if call is not calls[0] and module is None:
            break  # its import is reported
        called += 1
        try:
            made = eval(call)
            module = module or made
        except Exception as error:
            failed += 1
            print(f"{call}: {type(error).__name__}: {(str(error).strip() or '?').splitlines()[0]}")
print(f"torchao {torchao.__version__}: {called} imports and calls, {failed} failed")
sys.exit(1 if failed else 0)
