"""Who may import whom, and what a table may cost to import."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement

from portability.runner import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "portability"
LIGHT = (
    "model", "matrix", "expectations", "validation", "results", "writer", "merge", "table", "report", "render", "diff",
    "cli", "plugin", "catalogue", "harness", "pool", "kernel", "backend", "environments", "provenance", "testing",
    "commands.run", "commands.table", "commands.doctor", "commands.explain", "commands.merge", "commands.diff",
    "commands.history", "commands.env", "commands.lint", "commands.caniuse", "commands.update", "baselines.records",
    "baselines.coverage", "baselines.crossing",
)  # fmt: skip
# module -> the modules of the engine that it may import at its top
ALLOWED = {
    "model": set(),
    "kernel": {"model"},
    "backend": {"kernel", "model"},
    "expectations": {"model"},
    "binaries": {"model"},
    "results": {"model", "expectations", "binaries"},
    "merge": {"model", "results"},
}

ABSENT = ("packaging", "tabulate", "pytest", "xdist", "jinja2", "matplotlib")

# what each distribution of this repository ships, and what it may ask for beside its declared dependencies
SHIPS = {
    ROOT: {"portability", "kernels", "backends"},
    ROOT / "examples" / "xpu": {"portability_xpu"},
}
MODULES = {
    "pytest-xdist": "xdist",
    "triton-portability": "portability",
    "axe-playwright-python": "axe_playwright_python",
}
OF_AN_ENVIRONMENT = {"torch_npu"}  # brought by the environment in which a vendor's Triton is; never installed by us


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports at its top, of this package, without the prefix."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "portability":
            inner = node.module.partition(".")[2]
            yield from [inner] if inner else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (a.name.partition(".")[2] for a in node.names if a.name.startswith("portability."))


@pytest.mark.parametrize("module", ALLOWED)
def test_the_base_imports_nothing_above_it(module: str) -> None:
    """Nouns know nothing of what uses them."""
    assert set(imported(PACKAGE / f"{module}.py")) <= ALLOWED[module]


def test_kernels_import_only_the_case() -> None:
    """A kernel file can be copied out of here with what it needs from one module."""
    for path in (ROOT / "kernels").rglob("*.py"):
        of_engine = {m for m in imported(path) if not m.startswith("kernels")}
        assert of_engine <= {"kernel"}, path


def test_the_engine_names_no_kernel_and_no_adapter() -> None:
    """Cases and adapters are found: an engine that names one would have to be edited for the next."""
    for path in PACKAGE.glob("*.py"):
        named = {m for m in imported(path) if m.startswith(("kernels.", "backends."))}
        assert not named, path


def test_what_needs_no_compiler_imports_none() -> None:
    """Tables, look-ups and the plugin work where neither torch nor triton is."""
    modules = [f"portability.{m}" for m in LIGHT if (PACKAGE / f"{m.replace('.', '/')}.py").exists()]
    assert len(modules) > len(LIGHT) - 3, "the list above is of modules that exist"
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\n"
    code += "print([m for m in ('torch', 'triton', 'numpy') if m in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert made.stdout.strip() == "[]"


def test_a_runner_needs_nothing_but_torch_and_triton() -> None:
    """In the environment of another compiler none of what reads `matrix.toml`, tests or prints is installed."""
    served = [module for module, _, _ in OPERATIONS.values()]
    modules = [f"portability.{m}" for m in ("runner", "run", "outcomes", "reproducer.change", "mutation.load", *served)]
    code = f"import sys, importlib\nsys.modules.update(dict.fromkeys({ABSENT!r}))\n"
    code += f"for m in {modules!r}: importlib.import_module(m)\n"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert made.returncode == 0, made.stderr


def anywhere_imported(path: Path) -> Iterator[str]:
    """Yield the packages that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def asked_for(folder: Path, extras: bool = True) -> set[str]:
    """Return the modules that a distribution's dependencies bring, those of the project's own with them."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    more = project.get("optional-dependencies", {}).values() if extras else ()
    names = [Requirement(text).name for text in [*project["dependencies"], *(text for extra in more for text in extra)]]
    own = asked_for(ROOT, extras) if project["name"] != "triton-portability" else set()
    return {MODULES.get(name, name) for name in names} | own


@pytest.mark.parametrize("folder", SHIPS, ids=["the project", "the example"])
def test_what_a_distribution_imports_it_asks_for(folder: Path) -> None:
    """What is installed here by chance is missing on a machine where nothing was installed before."""
    known = asked_for(folder) | SHIPS[folder] | sys.stdlib_module_names | OF_AN_ENVIRONMENT
    files = [path for package in SHIPS[folder] for path in (folder / package).rglob("*.py")]
    assert files
    unknown = {f"{path.relative_to(folder)}: {name}" for path in files for name in anywhere_imported(path)
               if name not in known}  # fmt: skip
    assert not unknown


def test_tests_are_collected_where_no_extra_is_installed() -> None:
    """README's second command runs them so; what needs more asks for it within a test, or by `importorskip`."""
    known = asked_for(ROOT, extras=False) | SHIPS[ROOT] | sys.stdlib_module_names | {"tests", "benchmarks", "faulty"}
    unknown = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level and node.module else []
            unknown |= {f"{path.relative_to(ROOT)}: {n}" for n in names if n.split(".")[0] not in known}
    assert not unknown
