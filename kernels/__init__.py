"""The kernels, one file an operation, each with its mathematics first. A new file with a CASE is found by itself.

To learn Triton from them, read in this order: `vector_add` (programs, offsets, masks), `elementwise` (two dimensions,
strides, broadcasting), `softmax` (a reduction; rows that do not fit a block), `layer_norm` and its backward (sums over
rows without atomics), `matmul` (tiles, `tl.dot`, an epilogue), `flash_attention` (the two together), `autotuned`
(tuning done right), `decode_attention` (one small problem, split among many programs), `decoder_layer` (a model).
"""
