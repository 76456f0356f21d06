"""`portability check`: one file that launches kernels, on every target that can be tried here.

    report = check_files([Path("my_kernel.py")], Request())
    print(render(report, "text"))

A file is loose: no project and no kernel case is needed. It defines `run(dev)`, which launches and returns tensors, and
`ref()`, which returns what they should be; see `portability.checks.loose`. It is run under the checked interpreter and
compiled for every target, each in a process that may crash or hang; its source is held against the static rules; and
what the compilers made of it is compared between the targets.

`session` is the outside (files, targets, runners), `cell` what a runner does for one file and target, `assembly` what
is read from a compiled kernel, `differences` what of that targets do not share. `cell`, `loose`, `subject`, `assembly`
and `model` also work in triton-ascend's environment.
"""
