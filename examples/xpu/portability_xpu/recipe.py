"""How the environment `xpu` is made: triton-xpu is a package named `triton`, published for Python 3.11 alone."""

from portability.environments import COMMON, Recipe

XPU = Recipe(
    name="xpu",
    holds="triton-xpu 3.3.0b1",
    pythons=("3.11",),
    triton="triton-xpu==3.3.0b1",
    packages=COMMON,
)
