"""FlagGems: its operators by the names they have in the package, on small tensors.

A row of the table is what is called and with which arguments, as Python. An operator that fails is reported by its
name and hides no other; the exit code is 1 then.
"""

# ruff: noqa: E501 - a row of the table is a line
import os
import sys
from functools import partial

import torch

# the package's own variable: without it, FlagGems looks for nvidia-smi and stops where there is none
os.environ.setdefault("GEMS_VENDOR", "amd" if torch.version.hip else "nvidia")

import flag_gems
from flag_gems import experimental_ops, fused, ops

SHAPE = ROWS, COLUMNS = 64, 512


def real(*shape, dtype=torch.float32):
    return torch.rand(*(shape or SHAPE), device="cuda").to(dtype)


def whole(*shape, high=8, dtype=torch.int64):
    return torch.randint(0, high, shape or SHAPE, device="cuda").to(dtype)


half = partial(real, dtype=torch.bfloat16)
fp8 = partial(real, dtype=torch.float8_e4m3fn)
truth = partial(whole, high=2, dtype=torch.bool)
steps = partial(torch.arange, device="cuda", dtype=torch.int32)
POINTWISE = """
    abs abs_ absolute acos alias_copy angle arcsinh arcsinh_ arctanh_ asinh_ atan atan_ ceil ceil_ celu celu_ conj_physical
    cos cos_ cosh cosh_ digamma_ elu elu_ erf erf_ exp exp_ exp2 exp2_ expm1 expm1_ floor_ gelu gelu_ glu hardsigmoid
    hardswish_ i0 i0_ isfinite isinf isnan isneginf lift_fresh_copy log log10 log10_ log1p_ log_sigmoid logical_not logit
    logit_ nan_to_num neg neg_ reciprocal reciprocal_ relu relu6 relu_ resolve_conj resolve_neg round round_ rsqrt rsqrt_
    selu selu_ sgn_ sigmoid sigmoid_ signbit silu silu_ sin sin_ sinh_ softplus softshrink special_i0e special_i1 sqrt
    sqrt_ square square_ tan tan_ tanh tanh_"""
REDUCTIONS = """
    all amax aminmax any argmax argmin count_nonzero max mean min prod std sum var var_mean vector_norm"""
BINARY = """
    add add_ atan2 copy copy_ copysign div_mode div_mode_ eq equal floor_divide floor_divide_ fmin ge greater gt hypot
    isclose allclose le logaddexp logical_and logical_and_ logical_or logical_or_ logical_xor lt maximum minimum mse_loss
    mul mul_ ne polar pow_tensor_tensor pow_tensor_tensor_ remainder remainder_ soft_margin_loss sub sub_ true_divide
    true_divide_ gelu_backward silu_backward sigmoid_backward tanh_backward"""
SCALAR = """
    clamp clamp_ clamp_min clamp_min_ clip clip_ eq_scalar fill_scalar fill_scalar_ full_like ge_scalar greater_scalar
    gt_scalar le_scalar lt_scalar ne_scalar pow_tensor_scalar pow_tensor_scalar_"""

OPERATORS = {
    "real()": POINTWISE + REDUCTIONS + " contiguous normed_cumsum nonzero to_copy zeros_like ones_like rand_like"
    " randn_like zero_ t_copy uniform_ normal_ exponential_ bernoulli_",
    "real(), real()": BINARY + " normal_tensor_tensor",
    "real(), 0.5": SCALAR + " dropout",
    "2.0, real()": "pow_scalar normal_float_tensor",
    "real(), torch.tensor(1.0)": "fill_tensor fill_tensor_",
    "real(), 1": "all_dim any_dim argmax argmin cummax cummin cumsum max_dim mean_dim min_dim prod_dim sort"
    " _safe_softmax log_softmax softmax count_nonzero",
    "real(), 0": "argmax cumsum log_softmax max_dim prod_dim softmax sort",
    "real(4, 20000), 1": "cumsum log_softmax max_dim softmax sort",
    "real(), [0, 1]": "all_dims any_dims amax mean_dim std sum_dim var_correction var_dim var_mean flip",
    "real(4, 20000), 8": "topk",
    "real(), real(), 1, torch.float32": "log_softmax_backward softmax_backward",
    "half(2, 4, 64, 64), 0.5": "scaled_softmax_forward",
    "half(2, 4, 64, 64), half(2, 4, 64, 64), 0.5": "scaled_softmax_backward",
    "real(), truth(), 2.0": "dropout_backward masked_fill masked_fill_",
    "real(64, 64)": "diag diag_embed trace tril triu triu_",
    "whole(1000)": "_unique2 bincount one_hot unique_consecutive",
    "whole()": "bitwise_not bitwise_not_",
    "whole(), whole() + 1": "bitwise_and_tensor bitwise_and_tensor_ bitwise_left_shift bitwise_or_tensor"
    " bitwise_or_tensor_ bitwise_right_shift floor_divide isin remainder",
    "whole(), 3": "bitwise_and_scalar bitwise_and_scalar_ bitwise_or_scalar bitwise_or_scalar_",
    "3, whole()": "bitwise_and_scalar_tensor bitwise_or_scalar_tensor",
    "real(), real(64, 1024)": "glu_backward",
    "real(), real(), 0.5": "lerp_scalar lerp_scalar_ threshold_backward",
    "real(), 1.0, 1.0, 1.0, False, real()": "elu_backward",
    "real(), real(), real()": "addcdiv addcmul clamp_tensor clamp_tensor_ lerp_tensor lerp_tensor_",
    "truth(), real(), real()": "where_self",
    "real(), truth()": "masked_select",
    "real(), truth(), real()": "masked_scatter masked_scatter_",
    "SHAPE, device='cuda'": "ones rand randn zeros",
    "SHAPE, 0.5, device='cuda'": "full",
    "real(), SHAPE, 0.5": "new_full",
    "1000, device='cuda'": "arange eye randperm",
    "0, 1, 100, device='cuda'": "linspace logspace",
    # matrices
    "half(128, 256), half(256, 128)": "mm",
    "real(128, 256), real(256, 128)": "mm",
    "half(4, 128, 64), half(4, 64, 128)": "bmm",
    "half(128), half(128, 256), half(256, 128)": "addmm",
    "half(4, 128, 128), half(4, 128, 64), half(4, 64, 128)": "baddbmm",
    "half(), half(512)": "mv rmsnorm",
    "real(), real(64), real(512)": "addr",
    "real(5000), real(5000)": "dot vdot outer",
    "real(8, 8), real(16, 16)": "kron",
    "half(256, 128), half(4, 128, 128), steps(64, 257, 64)": "group_mm",
    "half()": "act_quant_triton hadamard_transform geglu reglu swiglu",
    "half(), 128": "per_token_group_quant_fp8",
    "fp8(128, 256), real(128, 2), fp8(128, 256), real(1, 2)": "fp8_matmul",
    "fp8(128, 256), fp8(128, 256), real(128, 2), real(1, 2), [128, 128]": "w8a8_block_fp8_matmul",
    "half(128, 128), fp8(128, 256), fp8(128, 256).t(), real(128, 1), real(1, 128)": "cutlass_scaled_mm",
    # places
    "real(), 1, whole()": "gather",
    "real(), real(), 1, whole(), False": "gather_backward",
    "real(), 1, whole(), real()": "scatter scatter_ scatter_add_",
    "real(), 0, whole(8)": "index_select",
    "real(), 0, whole(8), real(8, 512)": "index_add index_add_",
    "real(), [whole(8), whole(8)]": "index",
    "real(), [whole(8), whole(8)], real(8)": "index_put index_put_",
    "[real(), real()]": "cat hstack stack vstack",
    "real(), [2, 2]": "repeat tile",
    "real(), 3, 1": "roll",
    "real(), (1, 2)": "reflection_pad1d replication_pad1d",
    "real(), (1, 2, 3, 4)": "constant_pad_nd pad",
    "real(64), SHAPE, 1, 3": "select_backward",
    "real(), real(64, 8), 1, 0, 8": "slice_scatter",
    "real(64, 8), SHAPE, 1, 0, 8, 1": "slice_backward",
    "real(64, 31, 32), SHAPE, 1, 32, 16": "unfold_backward",
    "half(), whole(8, 16)": "embedding",
    "half(8, 16, 512), whole(8, 16), 64": "embedding_backward",
    "half(8, 16, 512), whole(8, 16), 64, -1, False": "embedding_dense_backward",
    # layers
    "half(), (512,), half(512), half(512)": "layer_norm",
    "half(), half(), (512,), half(512), half(512)": "skip_layer_norm",
    "half(), half(), (512,), real(64), real(64), half(512), half(512), [True] * 3": "layer_norm_backward",
    "half(), (512,), half(512)": "rms_norm",
    "half(), half(), real(64), (512,), half(512)": "rms_norm_backward",
    "half(), half(), (512,), half(512)": "fused_add_rms_norm",
    "real(8, 16, 64), real(16), real(16), 8, 16, 64, 4": "group_norm",
    "real(8, 16, 64), real(8, 16, 64), real(8, 4), real(8, 4), real(16), 8, 16, 64, 4, [True] * 3": "group_norm_backward",
    "real(8, 16, 64), real(16), real(16), real(16), real(16), True": "batch_norm instance_norm",
    "real(8, 16, 64), real(8, 16, 64), real(16), None, None, real(16), real(16), True, 1e-5, [True] * 3": "batch_norm_backward",
    "real(), real(64, 1)": "weight_norm weight_norm_interface",
    "real(), real(), real(64, 1), real(64, 1), 0": "weight_norm_interface_backward",
    "real(), whole(64)": "cross_entropy_loss nll_loss_forward nll_loss_nd_forward",
    "real(1), real(), whole(64), None, 1, -100, real(1)": "nll_loss_backward",
    "real(2, 8, 16, 16), whole(2, 16, 16)": "nll_loss2d_forward",
    "half(2, 8, 64), half(16, 8, 3)": "conv1d",
    "half(2, 8, 32, 32), half(16, 8, 3, 3)": "conv2d",
    "half(1, 8, 8, 16, 16), half(16, 8, 3, 3, 3)": "conv3d",
    "half(2, 8, 32, 32), half(8, 1, 3, 3), (3, 3), None, (1, 1), (1, 1), (1, 1)": "_conv_depthwise2d",
    "real(2, 8, 32, 32), 2": "avg_pool2d max_pool2d_with_indices pixel_unshuffle",
    "real(2, 8, 16, 16), real(2, 8, 32, 32), 2, 2, 0, False, True, None": "avg_pool2d_backward",
    "real(2, 8, 16, 16), real(2, 8, 32, 32), whole(2, 8, 16, 16), 2, 2, 0, 1, False": "max_pool2d_backward",
    "real(2, 8, 32, 32), (48, 48)": "upsample_nearest2d upsample_bicubic2d _upsample_bicubic2d_aa",
    "real(2, 8, 32), (48,)": "upsample_nearest1d _upsample_nearest_exact1d",
    "real(2, 8, 32), (48,), False": "upsample_linear1d",
    "real(2, 8, 8, 8, 8), (16, 16, 16)": "upsample_nearest3d",
    "real(2, 8, 48, 48), (48, 48), (2, 8, 32, 32), False": "_upsample_bicubic2d_aa_backward",
    "real(2, 8, 32, 32), (1, 1, 1, 1)": "reflection_pad2d",
    "real(2, 8, 8, 8, 8), (1,) * 6": "replication_pad3d",
    # attention, mixtures of experts, caches
    "*QKV, None, 0.0, True": "scaled_dot_product_attention",
    "half(2, 4, 128, 64), *QKV, half(2, 4, 128, 64), real(2, 4, 128), None, 0.0, True": "scaled_dot_product_attention_backward",
    "*TOKENS, None, None, 128, 128, 0.0, True, False": "flash_attention_forward",
    "*(t[0].transpose(0, 1) for t in QKV), 128, steps(0, 129, 128), 128, steps(0, 129, 128)": "flash_attn_varlen_func",
    "*TOKENS, real(2, 128, 4), half(2, 128, 4), 0.1, real(2, 4, 64, 64), True": "chunk_gated_delta_rule_fwd",
    "*TOKENS, real(2, 128, 4), half(2, 128, 4), 0.1, real(2, 4, 64, 64), True, steps(0, 129, 64)": "fused_recurrent_gated_delta_rule_fwd",
    "half(2, 1, 16, 576), steps(8).view(2, 4), half(8, 64, 1, 576), 256, 64, 2, 1, steps(100, 102), 16, 1, 576, 512, True": "flash_mla",
    "half(16, 64, 576), half(128, 1, 576), whole(16, 1, 64, dtype=torch.int32), 0.1": "flash_mla_sparse_fwd",
    "half(1, 16, 16, 512), half(1, 128, 512), real(16), whole(1, 16, 64, dtype=torch.int32), 0.1": "sparse_attn_triton",
    "half(32, 4, 64), half(32, 4, 64), real(64, 32), real(64, 32), whole(32)": "apply_rotary_pos_emb",
    "half(32, 256), half(8, 512, 256), half(8, 256, 256), real(32, 2), whole(32, 2)": "fused_experts_impl",
    "whole(32, 2, dtype=torch.int32), 16, 8": "moe_align_block_size",
    "half(32, 2, 512), half(32, 512)": "moe_sum",
    "half(32, 64), 8, 4, 8, True, 1.0, half(64)": "grouped_topk",
    "real(32, 2), whole(32, 2, dtype=torch.int32), whole(32, 2, dtype=torch.int32), half(32, 8)": "topk_softmax",
    "half(8, 4, 64), half(8, 4, 64), half(16, 4, 8, 16, 8), half(16, 4, 64, 16), *SLOTS": "reshape_and_cache",
    "half(8, 4, 64), half(8, 4, 64), half(16, 16, 4, 64), half(16, 16, 4, 64), *SLOTS": "reshape_and_cache_flash",
    "half(8, 512), half(8, 64), half(16, 16, 576), torch.arange(8, device='cuda'), 'auto', real(1)": "concat_and_cache_mla",
    "real(), truth(), truth(), real(64)": "apply_repetition_penalties",
    "real(4, 5000), steps(4) * 0, steps(4) + 5000, 64": "bucket_sort_topk",
    "half(), half()": "gelu_and_mul silu_and_mul",
    "half(64, 256), half()": "dgeglu dreglu dswiglu",
    "half(512), half(512, 64)": "rwkv_mm_sparsity",
    "half(8, 256), half(256), half(8, 256), half(256), 4, 64": "rwkv_ka_fusion",
    "real(64, 4, 4), real(64, 4, 4)": "mhc_bwd",
    "half(64, 512), half(64, 4, 512), real(64, 4), real(64, 4, 4)": "mhc_post",
    "half(64, 4, 512), real(24, 2048), real(3), real(24), 1e-6, 1e-6, 1e-6, 2.0, 20": "mhc_pre",
}
TOKENS = half(2, 128, 4, 64), half(2, 128, 4, 64), half(2, 128, 4, 64)
QKV = half(2, 4, 128, 64), half(2, 4, 128, 64), half(2, 4, 128, 64)
SLOTS = torch.arange(8, device="cuda"), "auto", torch.ones(1, device="cuda"), torch.ones(1, device="cuda")

called = failed = 0
for arguments, names in OPERATORS.items():
    for name in names.split():
        called += 1
        try:
            operator = next(getattr(space, name) for space in (ops, fused, experimental_ops) if hasattr(space, name))
            eval(f"operator({arguments})")
        except Exception as error:
            failed += 1
            print(f"{name}({arguments}): {type(error).__name__}: {(str(error).strip() or '?').splitlines()[0]}")
print(f"FlagGems {flag_gems.__version__}: {called} calls, {failed} failed")
sys.exit(1 if failed else 0)
