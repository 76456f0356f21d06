"""The suite tests itself: kernels with one mistake each, and which cell catches it.

    files = kernel_files(cases)                    # reach: which functions of which file a case's operator uses
    mutants = mutants_of(path, functions)          # edits: sources with one mistake each
    report = run(mutants, ...)                     # trial: their cells on the interpreter, up to the first that fails

What no cell catches either cannot be told apart from the original, which `kernels/equivalent_mutants.toml` argues with
a reason, or is a hole in the samples.
"""
