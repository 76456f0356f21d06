"""The file of a failure to compile: the kernel, what the launch was specialised for, and `triton.compile`.

It is written before each compile, so that it is there where the compiler ends the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from portability.backend import Limits
from portability.reproducer.literals import UnwritableError, plain
from portability.reproducer.source import Sources

OLDEST = (3, 6)  # of Triton: `ASTSource` takes what it is given here since then

TARGETS = ("from triton.backends.compiler import GPUTarget", "from triton.compiler import ASTSource")
MAIN = '''def main():
    """Compile; print what the compiler says, and return 1 where it does not make what was asked for."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)  # LLVM writes here, and may return a binary after an error
        os.dup2(file.fileno(), 2)
        try:
            compiled = triton.compile(SOURCE, target=TARGET, options=OPTIONS)
        except Exception as error:
            compiled, raised = None, error
        finally:
            os.dup2(kept, 2)
        file.seek(0)
        said = file.read().decode(errors="replace")
    if said:
        print(said.strip())
    if compiled is None:
        print(f"{type(raised).__name__}: {raised}")
        return 1
    if "error:" in said:
        print("the compiler prints an error, and returns a binary all the same")
        return 1
    return check(compiled.metadata)
'''
CHECK = '''def check(metadata):
    """Compare with what the device has: a launch there would be refused."""
    asked = {"bytes of shared memory": metadata.shared, "threads": metadata.num_warps * TARGET.warp_size}
    asked["columns of tensor memory"] = getattr(metadata, "tmem_size", None) or 0
    over = [f"{asked[n]} {n}, the device has {most}" for n, most in LIMITS.items() if asked[n] > most]
    print("\\n".join(over) or "it compiles, and fits")
    return int(bool(over))
'''


@contextlib.contextmanager
def drafting(heading: str, limits: Limits, write: Callable[[str], None]) -> Iterator[None]:
    """Call `write` with the text of a file before each compile of a launch, whose failure it shows."""
    import triton
    from triton import compiler
    from triton.runtime.jit import JITFunction

    if tuple(int(n) for n in triton.__version__.split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UnwritableError(f"Triton {triton.__version__}: a file for `triton.compile` needs {oldest} or newer")
    plain_compile, plain_run = compiler.compile, JITFunction.run
    options: dict[str, Any] = {}

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        options.clear()
        options.update({k: v for k, v in kwargs.items() if k not in self.arg_names})
        self.device_caches.clear()  # what was compiled in this process before is compiled once more
        return plain_run(self, *args, grid=grid, warmup=warmup, **kwargs)

    def compile(src: Any, target: Any = None, **more: Any) -> Any:
        write(text(src, target, options, heading, limits))
        return plain_compile(src, target=target, **more)

    JITFunction.run, compiler.compile = run, compile
    try:
        yield
    finally:
        JITFunction.run, compiler.compile = plain_run, plain_compile


def text(source: Any, target: Any, options: Mapping[str, Any], heading: str, limits: Limits) -> str:
    """Return the file for an `ASTSource`. Raises `UnwritableError` naming what cannot be written."""
    sources = Sources()
    kernel = sources.name_of(source.fn)
    constants = {k: sources.expression(v) for k, v in source.constants.items()}
    head = [
        f'"""{heading}\n"""',
        "import os\nimport sys\nimport tempfile",
        'os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()  # a cached binary would hide what the compiler says\n'
        'os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # as it was compiled',
        "\n".join([sources.import_text(), *TARGETS]),
        sources.text(),
    ]
    arch = repr(target.arch)
    body = [
        f"TARGET = GPUTarget({target.backend!r}, {arch}, {target.warp_size})",
        f"LIMITS = {_limits(limits)}",
        f"OPTIONS = {{{', '.join(f'{k!r}: {plain(v)}' for k, v in options.items())}}}",
        "SOURCE = ASTSource(",
        f"    fn={kernel},",
        f"    signature={_rows({repr(k): repr(v) for k, v in source.signature.items()})},",
        f"    constexprs={_rows({repr(k): v for k, v in constants.items()})},",
        f"    attrs={_rows({repr(k): repr(v) for k, v in source.attrs.items() if v})},",
        ")",
    ]
    end = 'if __name__ == "__main__":\n    sys.exit(main())'
    pieces = [
        "\n\n".join(head[:4]).replace("\nimport torch\n", "\n"),
        head[4].rstrip(),
        "\n".join(body),
        CHECK.rstrip(),
        MAIN.rstrip(),
        end,
    ]
    return "\n\n\n".join(pieces) + "\n"


def _rows(entries: Mapping[str, str]) -> str:
    if sum(len(k) + len(v) for k, v in entries.items()) < 80:
        return f"{{{', '.join(f'{k}: {v}' for k, v in entries.items())}}}"
    return "{\n" + "".join(f"        {k}: {v},\n" for k, v in entries.items()) + "    }"


def _limits(limits: Limits) -> str:
    found = {
        "bytes of shared memory": limits.shared_memory, "threads": limits.threads,
        "columns of tensor memory": limits.tensor_memory,
    }  # fmt: skip
    return repr({k: v for k, v in found.items() if v is not None})
