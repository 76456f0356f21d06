"""The file of a failure to compile: the kernel, what the launch was specialised for, and `triton.compile`.

It is written before each compile, so that it is there where the compiler ends the process. What a launch refuses before
that (an option that the target has not) is shown by the launch itself, under a driver that has no device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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


# A launch as far as its binder: what Triton asks of a driver before it compiles.
DRIVER = '''class Driver:
    """A driver that is told its target, and has no device."""

    def get_current_target(self):
        return TARGET

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0
'''
LAUNCH = '''def main():
    """Launch, as far as the compiler; print what is refused."""
    triton.runtime.driver.set_active(Driver())
    try:
        {call}
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}")
        return 1
    print("nothing is refused")
    return 0
'''
END = 'if __name__ == "__main__":\n    sys.exit(main())'


@contextlib.contextmanager
def drafting(heading: str, limits: Limits, write: Callable[[str], None]) -> Iterator[None]:
    """Call `write` with the text of a file before each compile of a launch, whose failure it shows; and with that of a
    launch which never comes to that. Raises `UnwritableError` under a Triton that is too old.
    """
    import triton
    from triton import compiler
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    if tuple(int(n) for n in triton.__version__.split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UnwritableError(f"Triton {triton.__version__}: a file for `triton.compile` needs {oldest} or newer")
    plain_compile, plain_run = compiler.compile, JITFunction.run
    options: dict[str, Any] = {}

    reached: list[bool] = []

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        options.clear()
        options.update({k: v for k, v in kwargs.items() if k not in self.arg_names})
        reached.clear()
        self.device_caches.clear()  # what was compiled in this process before is compiled once more
        try:
            return plain_run(self, *args, grid=grid, warmup=warmup, **kwargs)
        except Exception:  # of whatever kind: it is raised again; a launch that is refused never reached the compiler
            if not reached:
                write(launch_text(self, args, kwargs, driver.active.get_current_target(), heading))
            raise

    def compile(src: Any, target: Any = None, **more: Any) -> Any:
        reached.append(True)
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
    body = [
        _target(target),
        f"LIMITS = {_limits(limits)}",
        f"OPTIONS = {{{', '.join(f'{k!r}: {plain(v)}' for k, v in options.items())}}}",
        "SOURCE = ASTSource(",
        f"    fn={kernel},",
        f"    signature={_rows({repr(k): repr(v) for k, v in source.signature.items()})},",
        f"    constexprs={_rows({repr(k): v for k, v in constants.items()})},",
        f"    attrs={_rows({repr(k): repr(v) for k, v in source.attrs.items() if v})},",
        ")",
    ]
    return _file(heading, sources, TARGETS, "\n".join(body), CHECK, MAIN)


def launch_text(kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Any, heading: str) -> str:
    """Return the file for a launch that is refused before anything is compiled."""
    sources = Sources()
    name = sources.name_of(kernel)
    given = [_argument(a, sources) for a in args]
    given += [f"{k}={_argument(v, sources)}" for k, v in kwargs.items() if k != "warmup"]
    call = LAUNCH.format(call=f"{name}.warmup({', '.join(given)}, grid=(1,))")
    return _file(heading, sources, TARGETS[:1], _target(target), DRIVER, call)


def _argument(value: Any, sources: Sources) -> str:
    """A warm-up takes a tensor's dtype in its place."""
    tensor = hasattr(value, "data_ptr") and hasattr(value, "dtype")  # or what stands for one
    return repr(value.dtype) if tensor else sources.expression(value)


def _target(target: Any) -> str:
    return f"TARGET = GPUTarget({target.backend!r}, {target.arch!r}, {target.warp_size})"


def _file(heading: str, sources: Sources, imports: Sequence[str], *parts: str) -> str:
    body = "\n\n\n".join(p.rstrip() for p in (sources.text(), *parts, END))
    theirs = [line for line in sources.import_text().splitlines() if line != "import torch" or "torch." in body]
    head = [
        f'"""{heading}\n"""',
        "import os\nimport sys\nimport tempfile",
        'os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()  # a cached binary would hide what the compiler says\n'
        'os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # as it was compiled',
        "\n".join([*theirs, *imports]),
    ]
    return "\n\n".join(head) + f"\n\n\n{body}\n"


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
