"""`portability port`: what a kernel of one target needs on another, with evidence, in four steps and a verdict.

    reports = Porting(harness, find("matmul", None, Path.cwd()), Request("cuda:90", "hip:gfx942")).reports()
    print(render(reports, "text"))

`subject` finds the kernel, `ends` the two targets, `session` takes the steps, `reading` is what a runner says of one
cell and its assembly, `special` the operations, layouts and silent differences, `fitting` and `search` the blocks that
fit, `advice` what to do about an error, `verdict` what it comes to, `model` the nouns, `rendering` their text forms.
`loose` and `recorded` move files that launch kernels themselves, and recorded launches. `reading` and `model` also work
in triton-ascend's environment.
"""
