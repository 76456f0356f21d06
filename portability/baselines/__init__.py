"""Baselines: what every API probe came to, by Triton's minor version and target, as `portability update` recorded it.

`files` reads and writes them, `records` makes them of observations, `history` compares versions, `answers` looks up.
Nothing here imports torch or triton.
"""
