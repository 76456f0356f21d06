"""`portability port`: what a kernel of one target needs on another, with evidence, in four steps and a verdict.

    with Porting(question, folder) as porting:
        print(render(porting.report(), "text"))

`subject` finds the kernel, `session` takes the steps, `reading` is what a runner says of one cell and its assembly,
`special` the operations, layouts and silent differences, `search` the blocks that fit, `advice` what to do about an
error, `model` the nouns, `rendering` their text forms. `reading` and `model` also work in triton-ascend's environment.
"""
