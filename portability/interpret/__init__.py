"""The checked interpreter: any Triton kernel on CPU tensors, with right values and every access judged.

    with opened(target) as session:
        operator(x, y)  # every kernel launched in here is interpreted
    session.problems, session.warnings, session.launches

Functions decorated for compiling are interpreted as they are: `TRITON_INTERPRET` stays unset, nothing is patched
outside a session, and the same process compiles before and after. What of Triton's private parts is used is listed in
`portability.interpret.internals`.
"""

from portability.interpret.report import SpinTimeout, Unsupported
from portability.interpret.session import Interpretation, KernelError, opened

__all__ = ["Interpretation", "KernelError", "SpinTimeout", "Unsupported", "opened"]
