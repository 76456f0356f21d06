"""The conformance kit: whether an adapter keeps the contract of `portability.backend`, check by check.

    from portability.conformance.kit import check_backend
    results = check_backend("my_backend")           # as `portability check-backend my_backend`

    from portability.conformance.observe import observe, project_case
    observation = observe(project_case("my_kernel"), "float32", "257", "interpreter")    # one cell, in this process

`kit` is the outside (which checks, on which targets, through runners), `inside` what a runner does in the adapter's own
environment (`detection` among it), `static` what needs neither, `cases` the small kernels that are launched, `model`
the nouns. `inside`, `detection`, `cases` and `model` also work in triton-ascend's environment.
"""
