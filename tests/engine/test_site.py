"""The page as a file, the badge, annotations and the README's table: structure, size, and nothing that gets out."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from portability.cli import main
from portability.merge import Merged, merge
from portability.model import Evidence, Finding, Outcome
from portability.report import build
from portability.results import read_runs, write_runs
from portability.site import github, markers, pictures
from portability.site.badge import render_badge, summary
from portability.site.data import Site, ascii_json, cleaned, columns_named, packed
from portability.site.page import SCRIPTS, render_page
from portability.site.pictures import draw
from portability.site.write import write_site
from portability.table import Table
from tests.engine.drawn import given, st
from tests.engine.fake_runs import TARGETS, cell, header, merged, rule, run, seen
from tests.engine.hostile import EVIL, evil_runs
from tests.engine.many_cells import many

RAN, WRONG, PASS = Evidence.RAN, Outcome.WRONG, Outcome.PASS


class Elements(HTMLParser):
    """The elements of a page, each with its attributes and the text right in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(f"/{tag}", [])  # what follows is not in it

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data

    def of(self, tag: str, **wanted: str) -> list[str]:
        return [
            text
            for (name, attributes), text in zip(self.found, self.texts, strict=True)
            if name == tag and all(attributes.get(k) == v for k, v in wanted.items())
        ]


def page_of(runs: Merged) -> str:
    return render_page(Site(runs), build(runs), draw(Site(runs)))


def index_of(page: str) -> Any:
    (text,) = Elements(page).of("script", id="index")
    return json.loads(text)


def details_of(page: str) -> list[Any]:
    (text,) = Elements(page).of("script", id="details")
    return [json.loads(line) for line in gzip.decompress(base64.b64decode(text)).split(b"\n")]


# ---------------------------------------------------------------------------------------------------- the page


def test_the_page_asks_for_nothing_outside_of_it() -> None:
    for tag, attributes in Elements(page_of(merged(seen()))).found:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:,")) or address == "results.jsonl", (
                tag,
                attributes,
            )


def test_only_its_own_script_may_run() -> None:
    page = page_of(merged(seen()))
    (script,) = Elements(page).of("script", type="module")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (a["content"] for _, a in Elements(page).found if a.get("http-equiv") == "Content-Security-Policy")
    assert f"script-src 'sha256-{digest}';" in str(policy)
    assert "default-src 'none'" in str(policy)


def test_every_part_of_the_script_is_in_the_page() -> None:
    folder = Path(sys.modules[render_page.__module__].__file__ or "").parent / "static"
    assert sorted(p.stem for p in folder.glob("*.js")) == sorted(SCRIPTS)


def test_the_index_holds_every_entry_and_its_names_once() -> None:
    index = index_of(page_of(merged(seen(), seen(WRONG, RAN, cell(dtype="float32"), detail="off by 0.3\nmore"))))
    assert len(index["entries"][0]) == len(index["cells"][0]) == 2
    words = [
        (index["evidence"][e], index["outcomes"][o], index["standings"][s])
        for e, o, s in zip(*index["entries"][1:4], strict=True)
    ]
    assert words == [("compiled", "pass", "as_expected"), ("ran", "wrong", "regression")]
    assert index["said"] == ["", "off by 0.3"]
    assert [c["target"] for c in index["columns"]] == [t.id for t in TARGETS]


def test_details_say_why_and_by_which_rule() -> None:
    declared = rule(WRONG, reason="known since 3.8")
    page = page_of(merged(seen(WRONG, RAN, detail="off"), of=header(declared)))
    (line,) = details_of(page)
    assert line["seen"]["detail"] == "off"
    assert line["why"] == "wrong, as declared: known since 3.8"
    assert index_of(page)["rules"][line["rule"]]["reason"] == "known since 3.8"


def test_several_runs_give_each_cell_a_history() -> None:
    both = merge([run(seen(when="2026-11-02")), run(seen(WRONG, RAN, when="2026-11-01"), seen(of=cell("cuda:80")))])
    entries, histories = details_of(page_of(both))[:2], details_of(page_of(both))[2:]
    assert [line["seen"]["outcome"] for line in entries] == ["pass", "pass"]
    assert [[record[3] for record in history] for history in histories] == [["wrong", "pass"], ["pass"]]


def test_a_target_that_is_left_out_is_nowhere() -> None:
    runs = merged(seen(), seen(of=cell("cuda:80")))
    index = Site(runs, omit=("cuda:80",)).index()
    assert "cuda:80" not in json.dumps(index)
    assert len(index["cells"][0]) == 1


def test_targets_of_several_environments_are_named_apart() -> None:
    old = replace(TARGETS[1], environment="triton-3.6")
    columns = Site(merged(seen(), of=header(targets=(TARGETS[0], TARGETS[1], old)))).columns
    assert list(columns_named(columns).values()) == ["cuda:80", "cuda:90@default", "cuda:90@triton-3.6"]


def test_the_banner_says_how_many_fail_and_links_to_them() -> None:
    text = Elements(page_of(merged(seen(WRONG, RAN), seen(of=cell(dtype="float32"))))).of(
        "p", **{"class": "state fails"}
    )[0]
    assert text.startswith("1 of 2 cells is not as declared:")


def test_without_scripts_the_squares_are_in_the_page() -> None:
    assert "ran 0/1 wrong!" in Elements(page_of(merged(seen(WRONG, RAN)))).of("td")


def test_an_empty_run_is_a_page_too() -> None:
    assert "0 cells" in page_of(merged())


# --------------------------------------------------------------------------------------------------- hostility

ALLOWED = {
    "html", "head", "meta", "title", "link", "style", "noscript", "script", "body", "header", "h1", "h2", "p", "a",
    "label", "span", "select", "option", "nav", "ul", "li", "main", "div", "button", "i", "small", "input", "section",
    "details", "summary", "dl", "dt", "dd", "figure", "figcaption", "b", "table", "thead", "tbody", "tr", "th", "td",
    "footer", "dialog",
}  # fmt: skip
SVG = {"svg", "g", "path", "pattern", "defs", "clippath", "rect", "use", "text", "tspan", "title", "desc", "style"}


def test_a_hostile_file_adds_no_element_no_script_and_no_handler() -> None:
    page = page_of(evil_runs())
    plain = Elements(page_of(merged(seen(WRONG, RAN)))).found
    elements = Elements(page).found
    assert {tag for tag, _ in elements if tag[0] != "/"} <= ALLOWED | SVG
    assert sum(tag == "script" for tag, _ in elements) == sum(tag == "script" for tag, _ in plain) == 3
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    assert not [a for _, a in elements if str(a.get("href", "")).lower().startswith("javascript")]


def test_hostile_text_is_made_harmless_to_read() -> None:
    page = page_of(evil_runs())
    for text in (
        page,
        json.dumps(index_of(page), ensure_ascii=False),
        json.dumps(details_of(page), ensure_ascii=False),
    ):
        assert all(c.isprintable() or c == "\n" for c in text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_in_a_page_ends_no_element_and_reads_back(value: Any) -> None:
    text = ascii_json(value)
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == json.loads(json.dumps(value))


@given(st.text())
def test_cleaned_text_keeps_its_lines_alone(text: str) -> None:
    assert all(line.isprintable() for line in cleaned(text).split("\n"))
    assert cleaned(text).count("\n") == text.count("\n")


def test_details_of_a_hostile_number_are_json() -> None:
    (text,) = Elements(page_of(evil_runs())).of("script", id="details")
    assert "NaN" not in gzip.decompress(base64.b64decode(text)).decode()


# ---------------------------------------------------------------------------------------------------- pictures


@pytest.fixture(scope="module")
def drawn() -> dict[str, ElementTree.Element]:
    """The pictures of many cells, by their titles."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install -e .[html]")
    return {p.title: ElementTree.fromstring(p.svg) for p in draw(Site(many(runs=2)))}


def words_of(picture: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_each_kind_of_picture_is_drawn_where_the_runs_hold_something(drawn: dict[str, ElementTree.Element]) -> None:
    assert list(drawn) == [
        "Kernels by target", "Coverage of the language by target", "Shared memory against its limit", "Rate over size",
        "Roofline of NVIDIA H200", "Change over runs",
    ]  # fmt: skip


def test_a_picture_takes_its_colours_from_the_page(drawn: dict[str, ElementTree.Element]) -> None:
    for picture in drawn.values():
        text = ElementTree.tostring(picture, encoding="unicode")
        assert "var(--" in text
        assert set(re.findall(r"#[0-9a-f]{6}\b", text)) <= {"#ffffff", "#000000"}


def test_pictures_share_no_id(drawn: dict[str, ElementTree.Element]) -> None:
    ids = [element.get("id") for picture in drawn.values() for element in picture.iter() if element.get("id")]
    assert len(ids) == len(set(ids)) > 0


def test_a_bar_says_how_many_pass_and_by_what(drawn: dict[str, ElementTree.Element]) -> None:
    words = words_of(drawn["Coverage of the language by target"])
    assert "H200 (cuda:90)" in words
    assert {"passes, ran", "passes, interpreted", "passes, compiled", "fails"} <= set(words)
    assert "356/360" in words


def test_a_rate_stands_below_the_ceiling_of_its_device(drawn: dict[str, ElementTree.Element]) -> None:
    words = words_of(drawn["Rate over size"])
    assert "NVIDIA H200, float32" in words
    assert "GB/s" in words
    assert "4257 GB/s" in words_of(drawn["Roofline of NVIDIA H200"])


def test_a_name_is_no_formula() -> None:
    pytest.importorskip("matplotlib")
    words = [word for picture in draw(Site(evil_runs())) for word in words_of(ElementTree.fromstring(picture.svg))]
    assert any("$x^{$" in word or "…" in word for word in words)


def test_the_same_runs_give_the_same_page() -> None:
    pytest.importorskip("matplotlib")
    assert page_of(merged(seen())) == page_of(merged(seen()))


def test_without_matplotlib_the_page_has_no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)
    page = page_of(merged(seen()))
    assert "compiled 1/1" in page
    assert "view=charts" not in page


# ------------------------------------------------------------------------------------------------ size and time


def test_ten_thousand_cells_are_written_in_five_seconds_and_three_megabytes(tmp_path: Path) -> None:
    runs = many(runs=2)
    assert len(runs.entries) >= 10_000
    began = time.process_time()
    write_site(tmp_path, runs, build(runs))
    assert time.process_time() - began < 5
    # What a server sends or an archive holds.
    assert sum(len(gzip.compress(f.read_bytes())) for f in tmp_path.iterdir()) < 3e6


def test_a_page_is_written_with_neither_torch_nor_triton(tmp_path: Path) -> None:
    write_runs(tmp_path / "run.jsonl", merged(seen()).runs)
    script = (
        "import sys; from portability.cli import main\n"
        f"main(['table', {str(tmp_path / 'run.jsonl')!r}, '--format', 'html', '-o', {str(tmp_path / 'site')!r}])\n"
        "print('torch' in sys.modules or 'triton' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
    assert (tmp_path / "site" / "index.html").is_file()


def test_details_are_packed_alike_every_time() -> None:
    assert packed(["1", "2"]) == packed(["1", "2"])
    assert gzip.decompress(base64.b64decode(packed(["1", "2"]))) == b"1\n2"


# ----------------------------------------------------------------------------------------------------- a badge


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([seen(), seen(of=cell("cuda:80"))], "2 compiled"),
        ([seen(evidence=RAN), seen(of=cell("cuda:80"))], "1 ran, 1 compiled"),
        ([seen(WRONG, RAN), seen(of=cell("cuda:80"))], "1 of 2 targets fails"),
        ([seen(Outcome.UNAVAILABLE, Evidence.NONE)], "nothing tried"),
    ],
)
def test_a_badge_counts_targets_by_evidence(observations: list[Any], message: str) -> None:
    assert summary(build(merged(*observations)))[0] == message


def test_a_badge_is_green_only_where_something_ran() -> None:
    ran, compiled, failing = (summary(build(merged(o)))[1] for o in (seen(evidence=RAN), seen(), seen(WRONG, RAN)))
    assert len({ran, compiled, failing}) == 3


def test_a_badge_is_svg_that_says_itself_in_words() -> None:
    made = ElementTree.fromstring(render_badge(build(merged(seen()))))
    assert made.get("aria-label") == "Triton kernels: 1 compiled"


# ------------------------------------------------------------------------------------------------- annotations

COMMAND = re.compile(r"::(error|warning) ([^:]*)::(.*)")


def commands(table: Table) -> list[tuple[str, str, str]]:
    lines = github.workflow_commands(table).splitlines()
    found = [COMMAND.fullmatch(line) for line in lines]
    assert all(found)
    return [(m[1], m[2], m[3]) for m in found if m]


def test_a_fault_is_an_error_at_its_line() -> None:
    bad = seen(WRONG, RAN, detail="off by 3 % at [0, 1]\nmore", line="kernels/matmul.py:41")
    assert commands(build(merged(bad))) == [
        (
            "error",
            "file=kernels/matmul.py,line=41,title=matmul%3A wrong (regression)",
            "off by 3 %25 at [0, 1]%0Amatmul-float16-64x64-cuda:90 (ran)",
        )
    ]


def test_cells_that_fail_alike_share_an_annotation() -> None:
    cells = [seen(WRONG, RAN, cell(sample=str(i)), detail="off", line="kernels/matmul.py:41") for i in range(8)]
    ((_, _, message),) = commands(build(merged(*cells)))
    assert message.endswith("and 3 more")


def test_a_finding_is_a_warning_and_a_declared_failure_is_nothing() -> None:
    warned = seen(WRONG, RAN, warnings=(Finding("grid-limit", "near it", "kernels/matmul.py:7"),))
    assert commands(build(merged(warned, of=header(rule(WRONG))))) == [
        ("warning", "file=kernels/matmul.py,line=7,title=grid-limit", "near it%0Acuda:90")
    ]


def test_what_is_not_shown_is_counted() -> None:
    cells = [seen(WRONG, RAN, cell(sample=str(i)), detail=f"off {i}") for i in range(30)]
    got = commands(build(merged(*cells)))
    assert len(got) == github.MOST
    assert got[-1][1] == "title=21 more"


def test_a_hostile_text_is_no_command_of_its_own() -> None:
    for _, properties, message in commands(build(evil_runs())):
        assert "::" not in properties
        assert "\n" not in message


def test_an_absolute_path_is_no_place_in_the_project() -> None:
    ((_, properties, _),) = commands(build(merged(seen(WRONG, RAN, line="/usr/lib/x.py:3"))))
    assert "file=" not in properties


def test_a_summary_that_has_no_room_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = build(many())
    assert "Left out" not in github.summary(table)
    monkeypatch.setattr(github, "ROOM", len(github.summary(table).encode()) - 1)
    assert "Left out, for want of room here: times.\n" in github.summary(table)


# ------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_runs(tmp_path / "run.jsonl", merged(seen(WRONG, RAN, line="kernels/matmul.py:41")).runs)
    return tmp_path / "run.jsonl"


def test_the_command_writes_a_site(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results.parent / "site"
    assert main(["table", str(results), "--format", "html", "-o", str(folder), "--title", "Ours & theirs"]) == 0
    assert sorted(f.name for f in folder.iterdir()) == ["badge.svg", "index.html", "results.jsonl"]
    assert "<h1>Ours &amp; theirs</h1>" in (folder / "index.html").read_text()
    assert read_runs(folder / "results.jsonl")[0].observations == read_runs(results)[0].observations
    assert "1 cell" in capsys.readouterr().out


def test_a_site_needs_a_folder(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(results), "--format", "html"]) == 2
    assert "--format html needs --output FOLDER" in capsys.readouterr().err


def test_annotations_come_with_a_summary_on_the_job_s_page(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = results.parent / "summary.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    assert main(["table", str(results), "--format", "github"]) == 0
    assert capsys.readouterr().out.startswith("::error file=kernels/matmul.py,line=41,")
    assert page.read_text().startswith("before\n### Kernels")


def test_a_badge_is_printed(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(results), "--format", "badge"]) == 0
    assert "1 of 1 target fails" in capsys.readouterr().out


def test_a_difference_is_printed_as_json(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(results), str(results), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"Summary": ["cells in both: 1; no change"]}


# ------------------------------------------------------------------------------------------------- in a README

README = "# Ours\n\n<!-- table -->\nold\n<!-- /table -->\n\nmore\n"


def test_a_readme_is_brought_into_step_and_stays_so(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = results.parent / "README.md"
    readme.write_text(README)
    update = ["table", str(results), "--update", str(readme)]
    assert main([*update, "--check"]) == 1
    assert readme.read_text() == README
    assert main(update) == 0
    assert main([*update, "--check"]) == 0
    assert readme.read_text().startswith("# Ours\n\n<!-- table -->\n\n### Kernels")
    assert readme.read_text().endswith("\n<!-- /table -->\n\nmore\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- table -->",
        "<!-- /table --><!-- table -->",
        README + README,
        "<!-- table --><!-- table --><!-- /table -->",
    ],
)
def test_a_readme_without_one_place_for_a_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="needs <!-- table --> and after it <!-- /table -->, once each"):
        markers.embedded(text, build(merged(seen())))


def test_a_hostile_table_does_not_leave_its_place() -> None:
    once = markers.embedded(README, build(evil_runs()))
    assert markers.embedded(once, build(evil_runs())) == once
    assert EVIL not in once


def test_check_without_a_file_is_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(results), "--check"]) == 2
    assert "--check needs --update FILE" in capsys.readouterr().err
