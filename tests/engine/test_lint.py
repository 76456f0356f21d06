"""The static rules: each fires on its bad example and on nothing else, and says nothing of the good one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from portability.lint import RULES, LintFinding, Report, lint_paths, lint_source, render
from portability.lint.docs import updated
from portability.lint.model import MARK
from portability.lint.names import Names, known
from portability.lint.source import Source

ROOT = Path(__file__).parents[2]
RULE = pytest.mark.parametrize("code", sorted(RULES))

KERNEL = """\
import torch, triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, 2 * x)
"""


def found(text: str, path: str = "kernel.py", folders: tuple[str, ...] = ()) -> list[tuple[int, str]]:
    return [(f.line, f.code) for f in lint_source(Source(text, path, folders))]


def body(lines: str, parameters: str = "x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr") -> str:
    """A kernel of these lines, which begin at line 5."""
    indented = "".join(f"    {line}\n" for line in lines.strip().splitlines())
    return f"import triton\nimport triton.language as tl\n@triton.jit\ndef some_kernel({parameters}):\n{indented}"


# ------------------------------------------------------------------------------------------------- rules


@RULE
def test_bad_example_fires_at_its_marks(code: str) -> None:
    """Every marked line, no other line, no other rule."""
    lines = RULES[code].bad.splitlines()
    marked = [(i, code) for i, line in enumerate(lines, 1) if line.endswith(MARK)]
    assert marked
    assert found(RULES[code].bad) == marked


@RULE
def test_good_example_is_clean(code: str) -> None:
    """No rule has anything to say of it."""
    assert found(RULES[code].good) == []


@RULE
def test_every_rule_says_why(code: str) -> None:
    """A summary, a reason, a link, and targets of known form."""
    rule = RULES[code]
    assert rule.summary.endswith(".")
    assert len(rule.reason) > 60
    assert rule.link.startswith("https://")
    assert all(t == "*" or t.split(":")[0] in ("cuda", "hip", "npu", "interpreter") for t in rule.targets)


@RULE
def test_every_finding_can_be_suppressed(code: str) -> None:
    """By its code on each line, by no code, and by the beginning of its code for the file."""
    marked = RULES[code].bad
    assert found(marked.replace(MARK, f"# noqa: {code}")) == []
    assert found(marked.replace(MARK, "# noqa")) == []
    assert found(f"# portability: ignore-file[{code[:3]}]\n{marked}") == []


def test_another_code_suppresses_nothing() -> None:
    """`# noqa: E501` is for someone else."""
    assert found(KERNEL.replace("2 * x)", "2 * x)  # noqa: E501")) == [(8, "TP402")]


def test_suppression_on_the_last_line_of_a_statement() -> None:
    """Where formatters put the comment of a call over several lines."""
    text = KERNEL.replace(
        "tl.store(y_ptr + offsets, 2 * x)", "tl.store(\n        y_ptr + offsets, 2 * x\n    )  # noqa: TP402"
    )
    assert found(text) == []


# ----------------------------------------------------------------------------------- other ways to write it


@pytest.mark.parametrize(
    ("imports", "jit", "tl"),
    [
        ("import triton\nimport triton.language as tl", "triton.jit", "tl."),
        ("import triton as t\nimport triton.language as language", "t.jit", "language."),
        ("from triton import jit, language as lang", "jit", "lang."),
        ("from triton import jit\nfrom triton.language import *", "jit", ""),
    ],
)
def test_aliases(imports: str, jit: str, tl: str) -> None:
    """The names do not matter, what they stand for does."""
    text = f"{imports}\n@{jit}\ndef kernel(x_ptr, N: {tl}constexpr):\n"
    text += f"    {tl}store(x_ptr, {tl}sqrt(N) + {tl}arange(0, N))\n"
    assert [code for _, code in found(text)] == ["TP306"]


@pytest.mark.parametrize(
    "decorators",
    [
        "@libentry()\n@triton.jit",
        "@triton.autotune(configs=[], key=[])\n@triton.jit",
        "@triton.jit(noinline=True)",
        "@our_jit",
    ],
)
def test_decorators(decorators: str) -> None:
    """Wrapped, tuned, with arguments, or hidden in a decorator of someone's own."""
    text = KERNEL.replace("@triton.jit", decorators)
    assert [code for _, code in found(text)] == ["TP402"]


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("TP305", "m = (1.0 - tl.load(x_ptr)) * -1e9\ntl.store(y_ptr, m)"),
        ("TP305", "m = tl.full((BLOCK,), -1e9, tl.float32)\ntl.store(y_ptr, tl.max(m, 0))"),
        ("TP305", "m = tl.zeros((BLOCK,), tl.float32) - 1e9\ntl.store(y_ptr, tl.max(m, 0))"),
        ("TP306", "tl.store(y_ptr, 1.0 / tl.sqrt(BLOCK) + tl.sum(tl.arange(0, BLOCK)))"),
        ("TP404", "x = tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n)\ntl.store(y_ptr, x.max(0))"),
        ("TP402", "o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\ntl.store(y_ptr + o, tl.load(x_ptr + o))"),
        ("TP401", "row = tl.program_id(axis=0)\nx_ptr += row * stride\ntl.store(y_ptr, tl.load(x_ptr))"),
        ("TP208", "done = 0\nwhile done == 0:\n    v = tl.atomic_add(y_ptr, 0)\n    done = v\ntl.store(x_ptr, 1)"),
        ("TP208", "while tl.atomic_cas(y_ptr, 0, 1) == 1:\n    pass\ntl.store(x_ptr, 1)"),
        ("TP501", "tl.store(y_ptr, tl.sum(tl.ones((BLOCK,), tl.float32), 0))"),
        ("TP505", "tl.store(y_ptr, tl.sum(tl.zeros((n,), tl.float32), 0))"),
    ],
)
def test_variants(code: str, lines: str) -> None:
    """The same fault in other words."""
    assert code in [c for _, c in found(body(lines))]


def test_the_last_tile_of_a_loop_over_k() -> None:
    """Pointers that a loop moves by BLOCK_K make the axis of BLOCK_K one of tiles."""
    lines = """
rows = tl.arange(0, 16)
p = x_ptr + rows[:, None] * stride + tl.arange(0, BLOCK)[None, :]
total = tl.zeros((16,), tl.float32)
for k in range(0, tl.cdiv(n, BLOCK)):
    total += tl.sum(tl.load(p, mask=rows[:, None] < n, other=0.0), 1)
    p += BLOCK
tl.store(y_ptr + rows, total, mask=rows < n)
"""
    assert [code for _, code in found(body(lines))] == ["TP403"]


# ---------------------------------------------------------------------------------- what is not reported


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            body(
                "o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                "if EVEN:\n    tl.store(y_ptr + o, 1.0)\nelse:\n    tl.store(y_ptr + o, 1.0, mask=o < n)",
                "y_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr",
            ),
            id="a masked branch beside it",
        ),
        pytest.param(
            body(
                "rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nd = tl.arange(0, D)\n"
                "at = rows[:, None] * D + d[None, :]\nx = tl.load(x_ptr + at, mask=rows[:, None] < n, other=0.0)\n"
                "tl.store(y_ptr + at, x, mask=rows[:, None] < n)",
                "x_ptr, y_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr",
            ),
            id="a head dimension that a block covers exactly",
        ),
        pytest.param(
            body(
                "rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                "at = rows[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
                "x = tl.load(x_ptr + at, mask=rows[:, None] < n)\ntl.store(y_ptr + rows, tl.sum(x, 1), mask=rows < n)"
            ),
            id="undefined rows that are reduced along columns",
        ),
        pytest.param(
            body(
                "o = tl.arange(0, BLOCK)\nx = tl.load(x_ptr + o, mask=o < n)\n"
                "tl.store(y_ptr, tl.sum(tl.where(o < n, x, 0.0), 0))"
            ),
            id="undefined lanes behind a select",
        ),
        pytest.param(
            body(
                "for start in range(0, n // BLOCK * BLOCK, BLOCK):\n    o = start + tl.arange(0, BLOCK)\n"
                "    tl.store(y_ptr + o, 1.0)"
            ),
            id="full tiles",
        ),
        pytest.param(
            body(
                "row = tl.program_id(0)\ntl.store(y_ptr + row * BLOCK, 1.0)\n"
                "tl.store(y_ptr + row.to(tl.int64) * stride, 1.0)"
            ),
            id="an index that is wide enough",
        ),
        pytest.param(
            body(
                "old = tl.load(x_ptr)\nseen = tl.atomic_cas(x_ptr, old, old * 2)\n"
                "while seen != old:\n    old = seen\n    seen = tl.atomic_cas(x_ptr, old, old * 2)"
            ),
            id="an update in a loop",
        ),
        pytest.param(
            "import torch, triton\n"
            "def f(x):\n    if torch.version.hip is None:\n        return x.to('cuda')\n    return x\n",
            id="a branch on the vendor",
        ),
        pytest.param(
            "import triton.language as tl\ntry:\n    from triton.language.extra.libdevice import rsqrt\n"
            "except ImportError:\n    from triton.language.extra.cuda.libdevice import rsqrt\n",
            id="an import that is tried",
        ),
        pytest.param(
            "import triton.language as tl\nif hasattr(tl, 'ones'):\n    ones = tl.ones\n", id="a name that is asked for"
        ),
        pytest.param(
            "import torch, triton\ndef f(x):\n    if not x.is_cuda:\n        return torch.exp(x)\n    return x\n",
            id="another way for other devices",
        ),
        pytest.param(
            "import torch, triton\ndef get_device_name(i):\n    return torch.cuda.get_device_name(i)\n",
            id="a question that is passed on",
        ),
        pytest.param(
            body(
                "x = tl.load(x_ptr)\nif FORMAT == 'fp8e4nv':\n    x = x.to(tl.float8e4nv)\ntl.store(y_ptr, x)",
                "x_ptr, y_ptr, FORMAT: tl.constexpr",
            ),
            id="a float8 format that the caller chose",
        ),
        pytest.param(
            "import triton\nimport triton.language as tl\n"
            "@triton.autotune(configs=[triton.Config({'B': 64}, 4), triton.Config({'B': 128}, 4)], key=[])\n"
            "@triton.jit\ndef fill_kernel(x_ptr, m_ptr, n, B: tl.constexpr):\n"
            "    o = tl.program_id(0) * B + tl.arange(0, B)\n    x = tl.load(x_ptr + o, mask=o < n)\n"
            "    m = tl.load(m_ptr + o, mask=o < n)\n    tl.store(x_ptr + o, tl.where(m, 0.0, x), mask=o < n)\n",
            id="an update that a second launch does not change",
        ),
        pytest.param("import torch\nx = torch.empty(3, device='cuda')\n", id="a file without Triton"),
    ],
)
def test_no_false_alarm(text: str) -> None:
    """Correct code that looks like a fault."""
    assert found(text) == []


def test_a_vendor_folder_is_a_branch() -> None:
    """What is not portable to others does not matter in a file for one vendor; what is wrong does."""
    text = KERNEL + "def f(n):\n    return torch.empty(n, device='cuda')\n"
    assert found(text) == [(8, "TP402"), (10, "TP101")]
    assert found(text, folders=("kernels", "_nvidia")) == [(8, "TP402")]


def test_bundled_kernels_keep_the_rules() -> None:
    """The kernels that people copy; probes are about what is not portable, so they do not."""
    report = lint_paths(sorted((ROOT / "kernels").glob("*.py")))
    assert report.kernels > 5
    assert render(report) == ""


# ----------------------------------------------------------------------------------- files, forms, codes


def test_select_and_ignore(tmp_path: Path) -> None:
    """By code or by its beginning; an unknown code is refused with the choices."""
    (tmp_path / "kernel.py").write_text(KERNEL + "def f(x):\n    assert x.is_cuda\n")

    def codes(**options: list[str]) -> list[str]:
        return [f.code for f in lint_paths([tmp_path], **options).findings]

    assert codes() == ["TP402", "TP102"]
    assert codes(select=["TP4"]) == ["TP402"]
    assert codes(ignore=["tp402"]) == ["TP102"]
    with pytest.raises(ValueError, match=r"no rule 'TP9'; there are TP101, .*TP506"):
        lint_paths([tmp_path], select=["TP9"])


def test_exit_codes(tmp_path: Path) -> None:
    """0 nothing, 1 findings, 2 unreadable, and 2 wins; findings of the other files are kept."""
    (tmp_path / "clean.py").write_text("x = 1\n")
    assert lint_paths([tmp_path]).exit_code == 0
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert lint_paths([tmp_path]).exit_code == 1
    (tmp_path / "broken.py").write_text("def f(:\n")
    report = lint_paths([tmp_path])
    assert report.exit_code == 2
    assert [(Path(u.path).name, u.reason) for u in report.unreadable] == [("broken.py", "line 1: invalid syntax")]
    assert [f.code for f in report.findings] == ["TP402"]


@pytest.mark.parametrize(
    "content", [b"import triton\x00\n", b"# coding: nonsense\nimport triton\n", b"import triton\n\xff\xfe\n"]
)
def test_what_is_no_python_is_unreadable(tmp_path: Path, content: bytes) -> None:
    """NUL bytes, an unknown encoding, bytes that are no UTF-8."""
    (tmp_path / "kernel.py").write_bytes(content)
    report = lint_paths([tmp_path])
    assert report.exit_code == 2
    assert "None" not in report.unreadable[0].reason


def test_code_that_nests_too_deeply_is_unreadable(tmp_path: Path) -> None:
    """Generated code, which parses and cannot be walked."""
    (tmp_path / "kernel.py").write_text(KERNEL.replace("2 * x", " + ".join(["x"] * 5000)))
    (tmp_path / "other.py").write_text(KERNEL)
    report = lint_paths([tmp_path])
    assert report.exit_code == 2
    assert [f.code for f in report.findings] == ["TP402"]


def test_a_path_that_is_not_there() -> None:
    """It is unreadable, not clean."""
    report = lint_paths(["no/such/folder"])
    assert report.exit_code == 2
    assert report.unreadable[0].reason == "no such file or folder"


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """However often, and through whatever link, it is named."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/kernel.py").write_text(KERNEL)
    (tmp_path / "link").symlink_to(tmp_path / "kernels")
    assert lint_paths([tmp_path, tmp_path / "link", tmp_path / "kernels/kernel.py"]).files == 1


FINDING = LintFinding("a,b.py", 3, 5, "TP402", "unmasked-store", "100% bad\nreally", ("hip:*",), "https://example.org")


def test_text_form() -> None:
    """path:line:column CODE message."""
    assert render(Report((FINDING,))) == "a,b.py:3:5 TP402 100% bad\nreally\n"


def test_json_form() -> None:
    """With a version, and everything that a finding has."""
    data = json.loads(render(Report((FINDING,), files=1), "json"))
    assert data["version"] == 1
    assert data["findings"][0] == {
        "path": "a,b.py", "line": 3, "column": 5, "code": "TP402", "rule": "unmasked-store",
        "message": "100% bad\nreally", "targets": ["hip:*"], "link": "https://example.org",
    }  # fmt: skip


def test_github_form_is_escaped() -> None:
    """A message cannot end its own annotation."""
    assert render(Report((FINDING,)), "github") == (
        "::warning file=a%2Cb.py,line=3,col=5,title=TP402 unmasked-store::100%25 bad%0Areally\n"
    )


def test_unknown_form() -> None:
    """The choices are named."""
    with pytest.raises(ValueError, match="format 'xml' is none of text, json, github"):
        render(Report(), "xml")


def test_targets_of_a_finding() -> None:
    """A pattern covers its targets and no others."""
    assert FINDING.concerns("hip:gfx942")
    assert not FINDING.concerns("cuda:90")


# ------------------------------------------------------------------------------------------- names, docs


def test_names_of_other_modules_stay_unknown() -> None:
    """An unknown name is nobody's, so that no rule speaks of it."""
    import ast

    tree = ast.parse("import numpy as np\nfrom .here import load\nnp.load\nload\nother")
    names = Names(tree)
    assert [names.resolve(s.value) for s in tree.body[2:] if isinstance(s, ast.Expr)] == [
        "numpy.load",
        ".here.load",
        "",
    ]


def test_known_names_cover_the_supported_releases() -> None:
    """From the floor to the newest, with what came and went."""
    assert known().releases[0].startswith("3.6")
    assert known().since["triton.language.squeeze"].startswith("3.7")
    assert "triton.language.advance" in known().until
    assert len(known().libdevice["cuda"] - known().libdevice["hip"]) == 139


def test_the_page_of_rules_is_in_step() -> None:
    """`python -m portability.lint.docs` changes nothing."""
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    assert updated(page) == page


def test_neither_torch_nor_triton_is_imported() -> None:
    """A linter runs on a bare machine."""
    program = "import sys, portability.lint; sys.exit(any(m in sys.modules for m in ('torch', 'triton', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
