"""Runs whose every text tries to be more than text: in a terminal, a page, a script, a link, a formula."""

from __future__ import annotations

from dataclasses import replace

from portability.merge import Merged, merge
from portability.model import (
    Accuracy,
    CaseInfo,
    Cell,
    Evidence,
    Finding,
    Observation,
    Outcome,
    Resources,
    SampleInfo,
    Target,
)
from portability.results import Provenance, Run
from tests.engine.fake_runs import header, rule, run, seen, timing

EVIL = (
    "\x1b[2J\x07</script><script>window.evil=1</script><!--<script>"
    "\"'><img src=x onerror=window.evil=1>{{7*7}}{%x%}${window.evil=1}`$x^{$\u202e\u2028\ud800"
    "<!-- /table -->\r\n::error::x\n]]><svg onload=window.evil=1>"
)
LINK = "javascript:window.evil=1"
TARGET = Target(
    f"evil {EVIL}", f"backend {EVIL}", EVIL, EVIL, Evidence.RAN, why=EVIL, remedy=EVIL, versions={EVIL: EVIL}
)
GONE = Target("gone", "backend", why=EVIL, remedy=EVIL)
CASE = CaseInfo(f"kernel {EVIL}", (EVIL,), (SampleInfo(EVIL),), EVIL, "", (EVIL,), EVIL)
PROBE = replace(CASE, name=f"probe {EVIL}", group=EVIL)


def _cell(case: CaseInfo) -> Cell:
    return Cell(case.name, EVIL, EVIL, TARGET.id, TARGET.environment)


def _seen(case: CaseInfo, outcome: Outcome, when: str) -> Observation:
    binary = Resources(EVIL, 1, 1, 1, 10**30, 1, 1, 1, 1, {EVIL: -1}, float("nan"), EVIL, EVIL, (EVIL,), EVIL, EVIL)
    return seen(
        outcome,
        Evidence.RAN,
        _cell(case),
        stage=EVIL,
        detail=EVIL,
        line=EVIL,
        warnings=(Finding(EVIL, EVIL, EVIL, (EVIL,)),),
        accuracy=Accuracy(float("inf"), float("nan"), float("-inf")),
        resources=(binary,),
        timing=timing(
            1.0, gbps=float("inf"), tflops=1.0, ceiling=0.5, ceiling_of=f"copy {EVIL} GB/s", torch_median=0.0
        ),
        blocks={EVIL: 1},
        blocks_from=EVIL,
        versions={"triton": EVIL, EVIL: EVIL},
        device=EVIL,
        when=when,
    )


def _run(name: str, outcome: Outcome) -> Run:
    provenance = Provenance(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, (EVIL,), EVIL, {EVIL: EVIL}, started=EVIL)
    made = header(
        rule(Outcome.WRONG, reason=EVIL, place=EVIL, link=LINK), rule(Outcome.RACE, kernel=("x",), reason=EVIL),
        name=f"{name} {EVIL}", targets=(TARGET, GONE), cases=(CASE, PROBE), provenance=provenance, claims={},
    )  # fmt: skip
    return run(*(_seen(case, outcome, f"{name}{EVIL}") for case in (CASE, PROBE)), of=made, file=EVIL)


def evil_runs() -> Merged:
    """Return two such runs, that contradict each other."""
    return merge([_run("1", Outcome.PASS), _run("2", Outcome.CRASH)])
