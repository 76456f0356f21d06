"""What `matrix.toml` may say, how it is refused, and what it makes of an observation."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from portability.expectations import disjoint, in_range
from portability.matrix import (
    LIMITS,
    Matrix,
    MatrixError,
    Samples,
    explain,
    judge,
    never_matched,
    parse_matrix,
    read_matrix,
    validate,
)
from portability.model import Cell, Evidence, Expectation, Observation, Outcome, Standing
from tests.engine.drawn import given, st
from tests.engine.fake_runs import CASES, TARGETS, cell, rule, seen

TODAY = date(2026, 11, 3)

WHOLE = """
[matrix]
kernels = ["my.kernels"]
backends = "my.backend"
samples = "full"
limits.compile = 600

[targets."hip:gfx942"]
title = "MI300X"
omit = true

[environments."triton-3.6"]
python = "envs/3.6/bin/python"
variables = { TRITON_CACHE_DIR = "cache" }
targets = ["cuda:*"]

[blocks.matmul."cuda:90/float16"]
BLOCK_M = 64
found = "by hand"

[[expect]]
kernel = ["matmul", "vector_*"]
target = "hip:gfx942"
outcome = ["compile_error", "wrong"]
match = "input_precision"
reason = "no TF32 there"
triton = ">=3.6,<4"
expires = 2027-01-31
link = "https://example.org/1"
"""


def judged(observation: Observation, *rules: Expectation, claimed: bool = True, probe: bool = False) -> Standing:
    matrix = Matrix(expectations=rules)
    probes = [observation.cell.kernel] if probe else []
    return judge(matrix, observation, lambda _: claimed, TODAY, probes).standing


# ------------------------------------------------------------------------------------------------- reading


def test_whole_file_is_read() -> None:
    matrix = parse_matrix(WHOLE)
    assert (matrix.kernels, matrix.backends, matrix.samples) == (("my.kernels",), ("my.backend",), Samples.FULL)
    assert matrix.limits == {"run": LIMITS["run"], "compile": 600}
    assert matrix.targets["hip:gfx942"].omit
    assert matrix.environments["triton-3.6"].variables == {"TRITON_CACHE_DIR": "cache"}
    assert matrix.blocks["matmul"]["cuda:90/float16"]["BLOCK_M"] == 64
    (expectation,) = matrix.expectations
    assert expectation.kernel == ("matmul", "vector_*")
    assert expectation.outcome == (Outcome.COMPILE_ERROR, Outcome.WRONG)
    assert (expectation.expires, expectation.dtype) == ("2027-01-31", ("*",))


def test_empty_file_is_the_matrix_of_a_project_without_one() -> None:
    assert parse_matrix("") == Matrix()


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"matrix\.toml: cannot be read"):
        read_matrix(tmp_path / "matrix.toml")


RULE = '[[expect]]\nkernel = "matmul"\noutcome = "wrong"\nreason = "r"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[matrix", "matrix.toml: "),
        ("[martix]", "unknown key 'martix'; nearest is matrix"),
        ("[matrix]\nkernel = []", "[matrix]: unknown key 'kernel'; nearest is kernels"),
        ("[matrix]\nkernels = [1]", "[matrix]: kernels = [1]: text or a list of texts is needed"),
        ('[matrix]\nsamples = "ful"', "samples = 'ful': nearest are full"),
        ("[matrix.limits]\nrun = -1", "[matrix.limits]: run = -1: a positive number of seconds"),
        ("[matrix.limits]\ncompille = 1", "unknown key 'compille'; nearest is compile"),
        ('[targets."cuda:90"]\nomit = "yes"', "[targets.\"cuda:90\"]: omit = 'yes': true or false"),
        ("[targets]\ncuda = 1", '[targets."cuda"]: 1 is not a table'),
        ("[environments.default]", "is the environment that runs the harness"),
        ('[environments."a b"]', "letters, digits"),
        ("[environments.x.variables]\nA = 1", "[environments.x.variables]: A = 1: text is needed"),
        ('[blocks.matmul."*"]\nBLOCK_M = "64"', "[blocks.matmul.\"*\"]: BLOCK_M = '64': a whole number"),
        ("expect = 1", "write it as [[expect]]"),
        (RULE.replace("wrong", "wrnog"), "[[expect]] 1: outcome = 'wrnog': nearest is wrong"),
        (RULE.replace("wrong", "pass"), "[[expect]] 1: outcome = 'pass'"),
        (RULE.replace('outcome = "wrong"', ""), "[[expect]] 1: outcome is needed"),
        (RULE.replace('"r"', '" "'), "[[expect]] 1: reason is needed"),
        (RULE.replace('kernel = "matmul"', ""), "[[expect]] 1: names no cell"),
        (RULE + RULE + 'match = "("', "[[expect]] 2: match = '(': no regular expression"),
        (RULE + 'triton = "3.6 or so"', "[[expect]] 1: triton = '3.6 or so': a version range"),
        (RULE + 'expires = "soon"', "[[expect]] 1: expires = 'soon': a date"),
        (RULE + 'kernels = "x"', "[[expect]] 1: unknown key 'kernels'; nearest is kernel"),
        (RULE.replace('"matmul"', "[]"), "[[expect]] 1: kernel = []: an empty list names nothing"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_place_value_and_choice(text: str, said: str) -> None:
    with pytest.raises(MatrixError) as error:
        parse_matrix(text)
    assert said in str(error.value)
    assert str(error.value).startswith("matrix.toml: ")


@given(st.integers(0, len(WHOLE)), st.integers(0, 12), st.text(alphabet='[]"=,.{}*<>019-\n abt', max_size=8))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(at: int, gone: int, put: str) -> None:
    try:
        matrix = parse_matrix(WHOLE[:at] + put + WHOLE[at + gone :])
    except MatrixError:
        return
    assert all(r.reason and r.outcome for r in matrix.expectations)


KEYS = (
    "matrix", "targets", "environments", "blocks", "expect", "kernels", "backends", "samples", "limits", "run", "title",
    "omit", "python", "variables", "host", "kernel", "dtype", "target", "outcome", "reason", "match", "triton",
    "expires", "link", "hip:gfx942", "matmul", "BLOCK_M", "*",
)  # fmt: skip
WORDS = ("full", "wrong", "compile_error", "pass", "matmul", "*", "cuda:90", ">=3.6", "2027-01-31", "(", "", "\u202e\n")


def toml(value: Any) -> str:
    """Return a value as TOML writes it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


LEAVES = st.sampled_from(WORDS) | st.integers(-(2**40), 2**40) | st.booleans() | st.floats(0, 1e6) | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
)


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), VALUES, max_size=4))
def test_a_file_of_any_tables_is_read_or_refused_by_its_name(tables: dict[str, Any]) -> None:
    """Known keys with values of any kind, nested in any way: nothing but `MatrixError` comes out."""
    text = "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in tables.items())
    matrix, refused = Matrix(), ""
    try:
        matrix = parse_matrix(text)
    except MatrixError as error:
        refused = str(error)
    assert not refused or refused.startswith("matrix.toml: ")
    assert all(r.reason and r.outcome for r in matrix.expectations)


# --------------------------------------------------------------------------------------------- validation


def check(text: str) -> None:
    validate(parse_matrix(text), CASES, TARGETS, families=("sm9x",))


def test_names_that_exist_are_accepted() -> None:
    check(WHOLE.replace('"cuda:90/float16"', '"sm9x/float16"'))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[targets."cuda:91"]', "[targets.\"cuda:91\"]: 'cuda:91' names nothing here; nearest are cuda:9"),
        ('[environments.x]\ntargets = ["rocm:*"]', "[environments.x]: targets: 'rocm:*'"),
        ('[blocks.matmull."*"]\nA = 1', "[blocks.matmull]: no such kernel; nearest is matmul"),
        ('[blocks.matmul."cuda:9"]\nA = 1', "'cuda:9' is no target or family; nearest are cuda:90, cuda:80"),
        ('[blocks.matmul."*/float61"]\nA = 1', "'float61' names nothing here; nearest are float16"),
        (RULE.replace("matmul", "matmal"), "[[expect]] 1: kernel: 'matmal' names nothing here; nearest is matmul"),
        (RULE + 'dtype = "float46"', "[[expect]] 1: dtype: 'float46'"),
        (RULE + 'sample = ["64x64", "64x65"]', "[[expect]] 1: sample: '64x65' names nothing here; nearest is 64x64"),
        (RULE + 'target = "hip:gfx9420"', "[[expect]] 1: target: 'hip:gfx9420' names nothing here; nearest"),
        (RULE + 'environment = "old"', "[[expect]] 1: environment: 'old' names nothing here"),
        (RULE.replace("matmul", "tl.exp"), "[[expect]] 1: kernel = 'tl.exp': an API probe"),
    ],
)
def test_names_that_do_not_exist_are_refused(text: str, said: str) -> None:
    with pytest.raises(MatrixError) as error:
        check(text)
    assert said in str(error.value)


def test_two_rules_on_one_cell_are_refused_with_the_cell() -> None:
    with pytest.raises(MatrixError, match=r"\[\[expect\]\] 2: governs matmul-float32-64x64-hip:gfx942, as .* 1 does"):
        check(RULE + 'triton = ">=3.6"\n' + RULE + 'target = "hip:*"\ntriton = "<3.8"')


def test_two_rules_with_disjoint_versions_are_accepted() -> None:
    check(RULE + 'triton = ">=3.8"\n' + RULE + 'triton = "<3.8"')


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        (">=3.8", "<3.8", True),
        (">=3.8", "<=3.8", False),
        (">3.6", "<3.6.1", False),  # 3.6.0.1 is in both
        ("==3.6.*", "==3.7.*", True),
        ("==3.6.*", "==3.6.2", False),
        ("!=3.6.*", ">=3.6,<3.7", True),
        ("!=3.6.*", ">=3.6,<3.8", False),
        ("~=3.6", ">=3.9", False),
        ("~=3.6", ">=4", True),
        ("", "==3.9.0", False),
    ],
)
def test_disjoint_version_ranges(a: str, b: str, apart: bool) -> None:
    assert disjoint(a, b) is disjoint(b, a) is apart


bounds = st.builds(
    lambda op, x, y: f"{op}3.{x}.{y}", st.sampled_from([">=", "<=", ">", "<", "==", "!=", "~="]),
    st.integers(5, 8), st.integers(0, 2),
)  # fmt: skip
ranges = st.lists(bounds, max_size=3).map(",".join)


@given(ranges, ranges)
def test_disjoint_ranges_share_no_release(a: str, b: str) -> None:
    versions = [f"3.{x}.{y}" for x in range(4, 10) for y in range(4)]
    if any(in_range(a, v) and in_range(b, v) for v in versions):
        assert not disjoint(a, b)


@pytest.mark.parametrize("version", ["3.9.0", "3.9.0+git1234", "3.10.0.dev5"])
def test_builds_of_the_development_branch_are_in_range(version: str) -> None:
    assert in_range(">=3.9", version)


# ------------------------------------------------------------------------------------------------- judging

COMPILED, INTERPRETED, RAN, LOWERED = Evidence.COMPILED, Evidence.INTERPRETED, Evidence.RAN, Evidence.LOWERED
REFUSED = rule(Outcome.COMPILE_ERROR, match="input_precision")
WRONG = rule(Outcome.WRONG)


@pytest.mark.parametrize(
    ("observation", "rules", "standing"),
    [
        (seen(), (), Standing.AS_EXPECTED),
        (seen(Outcome.WRONG, RAN), (), Standing.REGRESSION),
        (seen(Outcome.UNAVAILABLE, Evidence.NONE), (WRONG,), Standing.UNKNOWN),
        (seen(Outcome.HARNESS_ERROR), (WRONG,), Standing.REGRESSION),
        (seen(Outcome.COMPILE_ERROR, detail="bad input_precision"), (REFUSED,), Standing.AS_EXPECTED),
        (seen(Outcome.COMPILE_ERROR, detail="something else"), (REFUSED,), Standing.MISMATCH),
        (seen(Outcome.CRASH), (REFUSED,), Standing.MISMATCH),
        (seen(), (REFUSED,), Standing.STALE),
        (seen(evidence=LOWERED), (REFUSED,), Standing.UNKNOWN),
        (seen(), (WRONG,), Standing.UNKNOWN),  # compiling tells nothing of values
        (seen(evidence=INTERPRETED), (WRONG,), Standing.STALE),
        (seen(evidence=RAN), (WRONG,), Standing.STALE),
        (seen(evidence=RAN, launches=0), (WRONG,), Standing.UNKNOWN),  # an empty input
        (seen(), (rule(Outcome.WRONG, Outcome.COMPILE_ERROR),), Standing.UNKNOWN),
        (seen(Outcome.TIMEOUT, stage="compile"), (), Standing.UNKNOWN),
        (seen(Outcome.TIMEOUT, stage="compile"), (REFUSED,), Standing.UNKNOWN),
        (seen(Outcome.TIMEOUT, stage="compile"), (rule(Outcome.TIMEOUT),), Standing.AS_EXPECTED),
        (seen(Outcome.TIMEOUT, RAN, stage="run"), (), Standing.REGRESSION),
        (seen(Outcome.WRONG, RAN), (rule(Outcome.WRONG, expires="2026-11-02"),), Standing.EXPIRED),
        (seen(Outcome.WRONG, RAN), (rule(Outcome.WRONG, expires="2026-11-03"),), Standing.AS_EXPECTED),
        (seen(Outcome.WRONG, RAN), (rule(Outcome.WRONG, expires=">=3.9"),), Standing.EXPIRED),
        (seen(Outcome.WRONG, RAN), (rule(Outcome.WRONG, triton="<3.9"),), Standing.REGRESSION),
        (seen(Outcome.WRONG, RAN, versions={}), (rule(Outcome.WRONG, triton=">=3"),), Standing.REGRESSION),
        (seen(Outcome.WRONG, RAN), (rule(Outcome.WRONG, target=("hip:*",)),), Standing.REGRESSION),
    ],
)
def test_standing(observation: Observation, rules: tuple[Expectation, ...], standing: Standing) -> None:
    assert judged(observation, *rules) is standing


@pytest.mark.parametrize(
    ("observation", "standing"),
    [
        (seen(Outcome.UNSUPPORTED, INTERPRETED), Standing.AS_EXPECTED),
        (seen(Outcome.COMPILE_ERROR), Standing.AS_EXPECTED),
        (seen(), Standing.STALE),
        (seen(evidence=INTERPRETED), Standing.STALE),
        (seen(evidence=LOWERED), Standing.UNKNOWN),
        (seen(launches=0), Standing.UNKNOWN),
        (seen(Outcome.WRONG, RAN), Standing.MISMATCH),
        (seen(Outcome.TIMEOUT, stage="compile"), Standing.UNKNOWN),
    ],
)
def test_a_dtype_that_is_not_claimed_is_expected_to_be_refused(observation: Observation, standing: Standing) -> None:
    assert judged(observation, claimed=False) is standing


def test_a_working_dtype_that_is_not_claimed_says_what_to_do() -> None:
    verdict = judge(Matrix(), seen(evidence=RAN), lambda _: False, TODAY)
    assert verdict.why == "claimed not to work, works: extend the adapter's dtypes"


def test_a_refused_probe_is_no_regression_but_a_wrong_one_is() -> None:
    assert judged(seen(Outcome.COMPILE_ERROR), probe=True) is Standing.UNKNOWN
    assert judged(seen(Outcome.WRONG, RAN), probe=True) is Standing.REGRESSION


@given(st.sampled_from(Outcome), st.sampled_from(Evidence), st.booleans(), st.booleans(), st.sampled_from(Outcome))
def test_weak_evidence_is_never_stale(
    outcome: Outcome, evidence: Evidence, claimed: bool, probe: bool, declared: Outcome
) -> None:
    standing = judged(seen(outcome, evidence), rule(declared), claimed=claimed, probe=probe)
    if standing is Standing.STALE:
        assert outcome is Outcome.PASS
        assert evidence.rank >= COMPILED.rank
        assert evidence.executes or declared in (Outcome.COMPILE_ERROR, Outcome.OUT_OF_RESOURCES)


def test_expired_version_may_be_written_as_a_bare_version() -> None:
    (expectation,) = parse_matrix(RULE + 'expires = "3.10"').expectations
    assert expectation.expires == ">=3.10"


# ------------------------------------------------------------------------------------- never matched, explain


def never(*observations: Observation, **fields: Any) -> list[Expectation]:
    return never_matched(Matrix(expectations=(rule(Outcome.WRONG, **fields),)), observations, CASES)


def test_a_rule_on_a_cell_that_the_case_does_not_make_never_matches() -> None:
    assert never(seen(), kernel=("matmul",), dtype=("float32",), sample=("tall",))


@pytest.mark.parametrize(
    "fields",
    [
        {"kernel": ("matmul",), "sample": ("tall",)},  # it exists, and was not selected
        {"kernel": ("vector_add",)},  # not reached
        {"dtype": ("float32",), "sample": ("tall",), "target": ("hip:*",)},  # not reached
        {"dtype": ("float32",), "sample": ("tall",), "triton": "<3.9"},  # for another version
    ],
)
def test_a_rule_that_the_run_did_not_come_to_is_not_blamed(fields: dict[str, Any]) -> None:
    assert not never(seen(), **fields)


def test_an_unavailable_target_is_not_reached() -> None:
    nothing = seen(Outcome.UNAVAILABLE, Evidence.NONE)
    assert not never(nothing, kernel=("matmul",), dtype=("float32",), sample=("tall",))


def test_explain_names_the_rule_that_decided_and_the_one_for_another_version() -> None:
    rules = (
        rule(Outcome.WRONG, reason="seen on hardware", triton=">=3.9"),
        rule(Outcome.CRASH, reason="long ago", triton="<3.9", place="matrix.toml: [[expect]] 2"),
    )
    observation = seen(Outcome.WRONG, RAN, stage="compare", detail="off by one\nat 3")
    matrix = Matrix(expectations=rules)
    text = explain(matrix, observation, judge(matrix, observation, lambda _: True, TODAY))
    assert "observed   wrong, evidence ran, in compare" in text
    assert "decided by matrix.toml: [[expect]] 1: wrong: seen on hardware" in text
    assert "not for    matrix.toml: [[expect]] 2: Triton <3.9, and this is 3.9.0" in text


def test_rules_for_a_cell() -> None:
    matrix = Matrix(expectations=(rule(Outcome.WRONG, target=("hip:*",)), WRONG))
    assert matrix.rules_for(Cell("softmax", "float32", "1x1", "cuda:90"), {"triton": "3.9.0"}) == [WRONG]
    assert len(matrix.rules_for(cell("hip:gfx942"), {})) == 2
