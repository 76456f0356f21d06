"""Mutants: which mistakes are made of a kernel, whose cells try them, and what the report says."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from portability.matrix import Matrix
from portability.mutation.edits import Mutant, mutants_of
from portability.mutation.journal import Journal, entry_of, read_entries
from portability.mutation.load import mutated
from portability.mutation.reach import reach
from portability.mutation.report import FILE, EquivalentError, Equivalents, blocks, by_kind, embedded, score
from portability.mutation.trial import State, Task, Trials, Verdict

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`

SOURCE = '''
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, scale, eps, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    """Text."""
    out_ptr += tl.program_id(0)
    rows, columns = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        mask = (rows < M) & (start + columns < N)
        x = tl.load(x_ptr + rows * stride_xm + (start + columns) * stride_xn, mask=mask, other=float("-inf"))
        total += tl.exp(x - tl.max(x, 0)) * scale + eps
    tl.store(out_ptr, tl.sum(total, 0))


@triton.jit
def unused(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))


def operator(x, scale, blocks=None):
    if scale == 0:
        return x
    out = x.new_empty(3)
    kernel[(3,)](x, out)
    return out
'''


@pytest.fixture
def mutants(tmp_path: Path) -> list[Mutant]:
    """All mutants of the kernel and operator above."""
    (tmp_path / "made.py").write_text(SOURCE)
    return mutants_of(tmp_path / "made.py", ["kernel"], ["operator"])


def changes(mutants: list[Mutant], kind: str) -> set[tuple[str, str]]:
    return {(m.before, m.after) for m in mutants if m.kind == kind}


def test_each_mistake_is_made_where_it_can_be(mutants: list[Mutant]) -> None:
    """Every kind, each at its own line, in what is used alone."""
    assert {m.function for m in mutants} == {"kernel", "operator"}
    assert {m.kind for m in mutants} == {
        "mask-dropped", "other-changed", "off-by-one", "maximum-kept", "half-accumulator", "strides-swapped",
        "factor-dropped", "store-skipped", "race-introduced", "zeros-returned", "reference-returned",
    }  # fmt: skip
    (maximum,) = [m for m in mutants if m.kind == "maximum-kept"]
    assert "tl.max(x, 0)" in SOURCE.splitlines()[maximum.line - 1]


def test_a_mutant_is_the_whole_file_with_one_change(mutants: list[Mutant]) -> None:
    """What it was made from stays as it is, and so do all other lines."""
    original = ast.unparse(ast.parse(SOURCE)).splitlines()
    for m in (m for m in mutants if m.before != "the whole body"):
        lines = m.source[: m.source.index("def _mutant_zeros")].strip().splitlines()
        assert len(set(original) - set(lines)) == 1, m.name


def test_half_of_a_mask_is_dropped_too(mutants: list[Mutant]) -> None:
    whole = "(rows < M) & (start + columns < N)"
    assert {(whole, "rows < M"), (whole, "start + columns < N")} < changes(mutants, "mask-dropped")


def test_limits_and_loops_are_off_by_one(mutants: list[Mutant]) -> None:
    assert {("rows < M", "rows <= M"), ("range(0, N, BLOCK)", "range(0, N - BLOCK, BLOCK)")} < changes(
        mutants, "off-by-one"
    )


def test_other_is_another_value(mutants: list[Mutant]) -> None:
    assert changes(mutants, "other-changed") == {("float('-inf')", "0.0")}


def test_factors_are_dropped_by_name(mutants: list[Mutant]) -> None:
    """A scale and an epsilon, and nothing else."""
    assert {before.rpartition(" ")[2] for before, _ in changes(mutants, "factor-dropped")} == {"scale", "eps"}


def test_a_scribbling_program_has_names_of_its_own(mutants: list[Mutant]) -> None:
    """What it assigns is not what the program itself goes on with."""
    (race,) = [m for m in mutants if m.kind == "race-introduced"]
    function = next(n for n in ast.parse(race.source).body if isinstance(n, ast.FunctionDef) and n.name == "kernel")
    scribble, *body = function.body
    assert isinstance(scribble, ast.If)
    assert ast.unparse(scribble.test) == "tl.program_id(0) + 1 < tl.num_programs(0)"
    assigned = {n.id for n in ast.walk(scribble) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    assert all(name.endswith("_next") for name in assigned)
    assert ast.unparse(body[0]) == "out_ptr += tl.program_id(0)"


def test_equal_places_are_numbered(tmp_path: Path) -> None:
    """So that one of them can be argued about."""
    (tmp_path / "made.py").write_text(SOURCE.replace("rows < M", "rows < M) & (rows < M"))
    found = [m for m in mutants_of(tmp_path / "made.py", ["kernel"]) if m.before == "rows < M"]
    assert [m.nth for m in found] == [0, 1]


# ------------------------------------------------------------------------------------------------------- reach


def test_mutants_of_one_case_are_tried_on_every_case_that_runs_them() -> None:
    """A kernel that two cases share is not judged by one of them alone."""
    from portability.commands.mutate import _tasks
    from portability.kernels.layer_norm import CASE as NORM
    from portability.kernels.layer_norm_linear_gelu import CASES

    cases = [NORM, *CASES]
    modules = {c.name: c.operator.__module__ for c in cases}
    tasks = [t for t in _tasks(cases, modules, {CASES[1].name}) if t.mutant.function == "long_layer_norm_kernel"]
    assert tasks
    assert {next(iter(t.cases)) for t in tasks} == {"layer_norm"}
    assert all(CASES[1].name in t.cases for t in tasks)


def test_a_cell_that_does_not_run_the_function_is_passed_over(tmp_path: Path) -> None:
    """Softmax has a kernel for rows that fit a block and one for longer ones: short rows tell nothing of that."""
    import portability.kernels.softmax as original

    path, name = Path(original.__file__), original.__name__
    same = Mutant(path, "online_softmax_kernel", "nothing", 1, "", "", 0, path.read_text() + "\n# the same\n")
    trials = Trials(Matrix(), tmp_path, tmp_path, 1)
    try:
        (verdict,) = trials.run([Task(same, name, {"softmax": name})])
    finally:
        trials.close()
    every = sum(len(s.dtypes or original.FORWARD.dtypes) for s in original.FORWARD.samples if not s.bench)
    assert verdict.state is State.SURVIVED
    assert 0 < verdict.cells < every


def test_the_kernels_of_a_case_are_found_by_name() -> None:
    """Through launch functions, and not through the autograd function that only gradients run."""
    from portability.kernels.softmax import FORWARD

    found = {path.name: reached for path, reached in reach([FORWARD]).items()}
    kernels = set(found["softmax.py"].kernels)
    assert {k for k in kernels if k.endswith("softmax_kernel")} == {
        "softmax_kernel", "held_softmax_kernel", "online_softmax_kernel"
    }  # fmt: skip
    assert not any("backward" in k for k in kernels)
    assert found["softmax.py"].operators == {"softmax": ["softmax"]}


def test_a_helper_in_another_file_is_found() -> None:
    """A mutant of it is tried by the cases that call it."""
    from portability.kernels.matmul import CASES

    found = {path.name: reached for path, reached in reach(CASES).items()}
    assert "matmul" in found["operations.py"].cases("grouped_tile")


def test_a_mutated_module_stands_for_the_original_and_leaves_it(tmp_path: Path) -> None:
    """The case is made anew; afterwards the package is as it was."""
    import portability.kernels.vector_add as original

    path = Path(original.__file__)
    mutant = next(m for m in mutants_of(path, ["add_kernel"]) if m.kind == "off-by-one")
    file = tmp_path / "mutant.py"
    file.write_text(mutant.source)
    case = mutated(original.__name__, str(file), original.__name__)["vector_add"]
    assert case.operator is not original.CASE.operator
    assert case.operator.__code__.co_filename == str(file)
    assert sys.modules[original.__name__] is original
    assert sys.modules["portability.kernels"].vector_add is original


# ---------------------------------------------------------------------------------------------------- verdicts


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    """Mutants of vector_add, tried: three that can be told apart, and one that is the original."""
    import portability.kernels.vector_add as original

    path = Path(original.__file__)
    made = mutants_of(path, ["add_kernel"], ["add"])
    chosen = [next(m for m in made if m.kind == k) for k in ("mask-dropped", "race-introduced", "reference-returned")]
    same = Mutant(path, "add_kernel", "nothing", 1, "", "", 0, path.read_text() + "\n# the same\n")
    folder = tmp_path_factory.mktemp("mutants")
    trials = Trials(Matrix(), folder, folder, 1)
    try:
        name = original.__name__
        return list(trials.run([Task(m, name, {"vector_add": name}) for m in (*chosen, same)]))
    finally:
        trials.close()


def test_a_mutant_is_caught_by_the_cell_that_shows_it(verdicts: list[Verdict]) -> None:
    assert [(v.state, v.outcome) for v in verdicts[:3]] == [
        (State.CAUGHT, "out_of_bounds"), (State.CAUGHT, "race"), (State.CAUGHT, "launch_error"),
    ]  # fmt: skip
    assert verdicts[0].cell.startswith("vector_add-float32-")


def test_what_is_no_mistake_survives_every_cell(verdicts: list[Verdict]) -> None:
    assert verdicts[3].state is State.SURVIVED
    assert verdicts[3].cells > len(verdicts)


def test_the_score_leaves_out_what_cannot_be_told_apart(mutants: list[Mutant]) -> None:
    states = (State.CAUGHT, State.CAUGHT, State.SURVIVED, State.EQUIVALENT, State.INVALID)
    found = [entry_of(Verdict(m, s)) for m, s in zip(mutants, states, strict=False)]
    assert score(found) == "2 of 3 mutants that can be told apart are caught (66.7 %)"
    assert sum(sum(row[1:]) for row in by_kind(found)) == 5


def test_an_argument_names_one_mutant_and_its_reason(mutants: list[Mutant], tmp_path: Path) -> None:
    m = mutants[0]
    entry = f'file = "{m.file.name}"\nfunction = "{m.function}"\nkind = "{m.kind}"\nbefore = {m.before!r}\n'
    (tmp_path / FILE).write_text(f'[[equivalent]]\n{entry}nth = 0\nreason = "because"\n')
    known = Equivalents([tmp_path])
    assert len(known.unused({m.file.name})) == 1
    assert [known.reason(other) for other in mutants].count("because") == 1
    assert known.unused({m.file.name}) == []


@pytest.mark.parametrize(("text", "why"), [("[[equivalent]]\nfile = 'a.py'\n", "function"), ("[[", FILE)])
def test_an_argument_without_a_reason_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(EquivalentError, match=why):
        Equivalents([tmp_path])


def test_the_score_goes_between_markers(mutants: list[Mutant]) -> None:
    made = blocks([entry_of(Verdict(mutants[0], State.CAUGHT))])
    text = embedded("a\n<!-- mutation -->\nbefore this\n<!-- /mutation -->\nb\n", made, "README.md")
    assert text.startswith("a\n<!-- mutation -->\n\n1 of 1 mutants")
    assert "before this" not in text
    for page in ("no markers", "<!-- mutation -->", "<!-- /mutants --><!-- mutants -->"):
        with pytest.raises(ValueError, match=r"README\.md: needs"):
            embedded(page, made, "README.md")


def test_a_score_of_some_mutants_is_not_written_as_that_of_all(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- mutation -->\nbefore\n<!-- /mutation -->\n")
    for some in (["--kind", "off-by-one"], ["softmax"]):
        made = subprocess.run(
            [sys.executable, "-m", "portability.cli", "mutate", *some, "--no-run", "--update", str(page)],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert made.returncode == 2
        assert "leave out KERNEL and --kind" in made.stderr
    assert "before" in page.read_text()


def test_verdicts_are_kept_and_survivors_tried_again(mutants: list[Mutant], tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    journal = Journal(path)
    journal.add(Verdict(mutants[0], State.CAUGHT, "cell", "race", "why", 3))
    journal.add(Verdict(mutants[1], State.SURVIVED))
    again = Journal(path)
    kept = again.known(mutants[0])
    assert kept is not None
    assert (kept.state, kept.cell) == (State.CAUGHT, "cell")
    assert again.known(mutants[1]) is None
    survivor = again.known(mutants[1], survivors=True)
    assert survivor is not None
    assert survivor.state is State.SURVIVED
    assert again.known(mutants[2]) is None
    again.replace([Verdict(mutants[2], State.EQUIVALENT, detail="why")])
    assert [(e.state, e.before) for e in read_entries(path)] == [("equivalent", mutants[2].before)]


def test_a_line_that_is_no_verdict_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text('{"mutant": "a"}\n')
    with pytest.raises(ValueError, match=r"verdicts\.jsonl:1: no verdict"):
        Journal(path)


def test_the_page_is_what_the_kept_verdicts_make() -> None:
    """`portability mutate --no-run --results … --update docs/mutation.md` writes it."""
    root = Path(__file__).parent.parent.parent
    page = (root / "docs" / "mutation.md").read_text()
    assert embedded(page, blocks(read_entries(root / "results" / "mutation" / "verdicts.jsonl")), "page") == page


def test_a_sample_more_leaves_a_verdict_standing(tmp_path: Path) -> None:
    """A mutant is known by the code of its kernels, not by what stands around it, other kernels among it."""
    one, other = tmp_path / "made.py", tmp_path / "more" / "made.py"
    other.parent.mkdir()
    one.write_text(SOURCE)
    other.write_text("SAMPLES = (1, 2)\n" + SOURCE)
    third = tmp_path / "unused" / "made.py"
    third.parent.mkdir()
    third.write_text(SOURCE.replace("tl.store(x_ptr, tl.load(x_ptr))", "tl.store(x_ptr, 0)"))  # a kernel of its own
    changed = tmp_path / "changed" / "made.py"
    changed.parent.mkdir()
    changed.write_text(SOURCE.replace("tl.sum(total, 0)", "tl.max(total, 0)"))
    digests = [[m.digest for m in mutants_of(p, ["kernel"])] for p in (one, other, third, changed)]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests[0])) == len(digests[0])
    assert not set(digests[0]) & set(digests[3])
