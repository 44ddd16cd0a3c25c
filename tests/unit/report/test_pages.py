"""The report as files: every piece in its place, hostile text inert, memory flat."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import pytest

from proctor_grader.errors import StoreError
from proctor_grader.gates import GateSpec
from proctor_grader.model.result import Cause, UnitResult, Verdict
from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import UnitId, unit_id
from proctor_grader.report.page import write_report
from proctor_grader.report.source import AttemptEvidence, EvidenceSource, Excerpt
from proctor_grader.report.table import CaptureRows
from proctor_grader.report.task_page import page_name
from tests.make.example_run import COVERAGE, HISTORY, NOTICES, TRANSCRIPT, small_run
from tests.make.golden import assert_golden
from tests.make.hostile import ATTACKS, SECRET, hostile_run
from tests.make.report import (
    ReportedRun,
    json_lines,
    make_record,
    make_result,
    make_task,
    many_results,
)

VOID = {"meta", "link", "br", "hr", "img", "input"}
RUNS_CODE = re.compile(r"on[a-z]+", re.IGNORECASE)


class Outline(HTMLParser):
    """The elements of a page: well nested, and what they refer to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.attributes: set[str] = set()
        self.headings: list[tuple[int, str]] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "action", "formaction", "xlink:href", "data", "srcset"}:
                self.references.append(value or "")
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and re.fullmatch(r"h[1-6]", self.open[-1]) and self.headings:
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data.strip())


def outlines(index: Path) -> dict[str, Outline]:
    pages = [index, *sorted((index.parent / "units").iterdir())]
    return {page.name: Outline(page.read_text(encoding="utf-8")) for page in pages}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of sixteen units and one hostile one, with everything a page can have."""
    run = hostile_run(small_run(tmp_path_factory.mktemp("run")))
    spec = GateSpec(Decimal(80))
    return run.write(spec, HISTORY, coverage=COVERAGE, notices=(*NOTICES, *ATTACKS))


def page_of(index: Path, task: str) -> str:
    page = index.parent / "units" / page_name(unit_id(TaskId(task)))
    return page.read_text(encoding="utf-8")


class TestStructure:
    def test_every_page_is_well_formed_and_safe(self, report: Path) -> None:
        for name, outline in outlines(report).items():
            assert not {"iframe", "object", "embed", "style", "img", "base"} & set(outline.tags)
            assert outline.tags.count("script") == 1, name
            assert "style" not in outline.attributes
            assert not [each for each in outline.attributes if RUNS_CODE.fullmatch(each)]
            assert len(outline.ids) == len(set(outline.ids)), name

    def test_references_stay_in_the_folder_or_are_links_of_a_doc(self, report: Path) -> None:
        for name, outline in outlines(report).items():
            folder = report.parent if name == "index.html" else report.parent / "units"
            for reference in outline.references:
                path, _, fragment = reference.partition("#")
                if re.match(r"https://example\.com/", reference):
                    continue
                assert not re.match(r"[a-z]+:|//", path, re.IGNORECASE), reference
                if path:
                    target = (folder / path).resolve()
                    assert target.is_relative_to(report.parent.resolve())
                    assert target.is_file(), reference
                if fragment and not path:
                    assert fragment in outline.ids, reference

    def test_headings_go_down_one_step_at_a_time(self, report: Path) -> None:
        for name, outline in outlines(report).items():
            levels = [level for level, _ in outline.headings]
            assert levels[0] == 1, name
            assert levels.count(1) == 1, name
            assert all(b - a <= 1 for a, b in pairwise(levels)), name

    def test_every_page_has_its_landmarks_and_its_language(self, report: Path) -> None:
        for page in [report, *sorted((report.parent / "units").iterdir())]:
            text = page.read_text(encoding="utf-8")
            assert '<html lang="en">' in text
            assert '<a class="skip" href="#main">' in text
            assert {"header", "main", "footer", "nav"} <= set(Outline(text).tags)

    def test_only_its_own_sheet_and_script_may_load(self, report: Path) -> None:
        policy = "default-src 'none'; style-src 'self' file:; script-src 'self' file:;"
        for page in [report, *sorted((report.parent / "units").iterdir())]:
            assert policy in page.read_text(encoding="utf-8")
        assert {each.name for each in (report.parent / "assets").iterdir()} == {
            "report.css",
            "report.js",
        }
        sheet = (report.parent / "assets/report.css").read_text(encoding="utf-8")
        assert "@import" not in sheet
        assert "url(" not in sheet


class TestIndex:
    def test_failures_come_first(self, report: Path) -> None:
        outcomes = re.findall(r'<tr id="[^"]+" data-outcome="(\w+)">', report.read_text("utf-8"))
        order = list(dict.fromkeys(outcomes))
        assert order == ["failed", "error", "cancelled", "ungraded", "passed"]
        assert len(outcomes) == 18

    def test_the_result_is_told_with_its_reasons(self, report: Path) -> None:
        text = report.read_text("utf-8")
        assert "Not passed" in text
        assert "minAccuracy: got 47.06, wanted &gt;= 80" in text
        assert NOTICES[0] in text.replace("&#39;", "'")
        assert "fp-c29371ab86fb181d9de1d3e5b96932f8" in text
        assert "<strong>3 of 14</strong>" in text

    def test_every_row_leads_to_its_page_and_back(self, report: Path) -> None:
        units = re.findall(r'<tr id="([^"]+)"', report.read_text("utf-8"))
        for unit in units:
            page = report.parent / "units" / page_name(UnitId(unit))
            assert f'href="../index.html#{unit}"' in page.read_text("utf-8")

    def test_a_run_without_units_has_a_page(self, tmp_path: Path) -> None:
        text = ReportedRun(tmp_path).write().read_text("utf-8")
        assert "No unit has a result." in text
        assert 'id="plots"' not in text

    def test_variants_and_trials_are_told_apart(self, tmp_path: Path) -> None:
        run = ReportedRun(tmp_path)
        for variant in ("haiku", "sonnet"):
            for trial in (1, 2):
                run.add(make_task("t"), make_result("t", variant=variant, trial=trial))
        text = run.write().read_text("utf-8")
        assert text.count(">haiku</td>") == 2
        assert text.count('<span class="tag">trial 2</span>') == 2
        assert "Accuracy of <bdi>sonnet</bdi>" in text
        assert len(list((tmp_path / "report/units").iterdir())) == 4


class TestUnitPage:
    def test_it_shows_question_answer_and_checks(self, report: Path) -> None:
        text = page_of(report, "revenue_october")
        assert "Say what was refunded." in text
        assert '<mark class="hit">$1,284,500.20' in text
        assert '<mark class="miss">40,210.00' in text
        assert "4.26 % below" in text
        assert text.count('<svg class="check-plot"') == 3

    def test_it_shows_what_the_agent_recorded(self, report: Path) -> None:
        text = page_of(report, "revenue_october")
        assert "8 steps" in text
        assert "3 calls" in text
        assert "relation &#34;refund&#34; does not exist" in text
        assert "s3cr3t-pass" not in text
        assert "postgresql://***@db:5432/b" in text

    def test_it_shows_captures_and_scripts_logs(self, report: Path) -> None:
        text = page_of(report, "rebuild_fct_orders")
        assert '<th scope="col">order_id</th>' in text
        assert '<span class="null">NULL</span>' in text
        assert "8,403 more rows not shown" in text
        assert "dropped 1 table" in text
        assert "rm: no such file" in text

    def test_it_shows_the_doc_and_the_digests(self, report: Path) -> None:
        text = page_of(report, "revenue_october")
        assert "<h3>Net revenue</h3>" in text
        assert "<h4>Pitfalls</h4>" in text
        assert "9f86d081884c7d659a2feaa0c55ad015" in text

    def test_a_unit_without_evidence_says_what_is_missing(self, report: Path) -> None:
        text = page_of(report, "year_end")
        assert "The agent left no answer." in text
        assert "No stage was run." in text
        assert "none was started" in text

    def test_how_the_agent_ended_is_told(self, report: Path) -> None:
        text = page_of(report, "long_haul")
        assert "The agent did not end normally: AgentTimeout" in text
        assert "timed out, ended by signal 9" in text

    def test_a_task_that_is_gone_still_has_its_result(self, tmp_path: Path) -> None:
        run = ReportedRun(tmp_path)
        run.add(make_task("t"), make_result("t"))
        run.tasks.clear()
        assert "It is <mark" in page_of(run.write(), "t")

    def test_a_stream_on_standard_output_is_the_transcript(self, tmp_path: Path) -> None:
        run = ReportedRun(tmp_path)
        run.add(make_task("t"), make_result("t"), {"stdout.log": json_lines(TRANSCRIPT)})
        text = page_of(run.write(), "t")
        assert "(agent/stdout.log)" in text
        assert "8 steps" in text

    def test_a_long_transcript_shows_its_two_ends(self, tmp_path: Path) -> None:
        run = ReportedRun(tmp_path)
        lines = [{"role": "user", "content": f"step {n} " + "x" * 500} for n in range(3_000)]
        run.add(make_task("t"), make_result("t"), {"transcript.jsonl": json_lines(lines)})
        text = page_of(run.write(), "t")
        assert "step 0 x" in text
        assert "step 2999 x" in text
        assert "step 1500 x" not in text
        assert re.search(r'<li class="gap">[\d.]+ [KM]iB left out</li>', text)

    def test_without_evidence_the_question_is_the_tasks(self, tmp_path: Path) -> None:
        run = ReportedRun(tmp_path)
        run.tasks[TaskId("t")] = make_task("t", prompt="How many orders?")
        run.results.append(make_result("t"))
        assert "How many orders?" in page_of(run.write(), "t")

    def test_pages_lead_to_their_neighbours(self, tmp_path: Path) -> None:
        run = ReportedRun(tmp_path)
        for name in "abc":
            run.add(make_task(name), make_result(name))
        text = page_of(run.write(), "b")
        assert f'<a rel="prev" href="{unit_id(TaskId("a"))}.html" aria-label="Previous: a">' in text
        assert f'<a rel="next" href="{unit_id(TaskId("c"))}.html" aria-label="Next: c">' in text

    @pytest.mark.parametrize("unit", ["../../x", "a/b", "", ".", "A", "x" * 64, "a\x00"])
    def test_an_odd_id_stays_in_the_folder(self, unit: str) -> None:
        assert re.fullmatch(r"[0-9a-f]{64}\.html", page_name(UnitId(unit)))

    def test_the_whole_page_is_as_reviewed(self, report: Path) -> None:
        text = page_of(report, "revenue_october")
        stored = str(report.parents[1])
        assert_golden("report/unit.html", text.replace(stored, "/run"))


class TestHostileText:
    def test_it_is_shown_and_runs_nothing(self, report: Path) -> None:
        task = next(page for page in (report.parent / "units").iterdir() if "script" in page.name)
        text = task.read_text("utf-8")
        assert "<script>window" not in text
        assert "&lt;script&gt;window.hacked = 1; alert(1)&lt;/script&gt;" in text
        assert "{{ 7 * 7 }}" in text
        assert "forged heading" not in {words for _, words in Outline(text).headings}
        assert SECRET not in text

    @pytest.mark.parametrize("sign", ["\x00", "\x1b", "\u202e", "\u2066", "\u200b", "\x7f"])
    def test_nothing_hides_or_reorders(self, report: Path, sign: str) -> None:
        for page in [report, *sorted((report.parent / "units").iterdir())]:
            assert sign not in page.read_text("utf-8")

    def test_pages_stay_bounded(self, report: Path) -> None:
        for page in (report.parent / "units").iterdir():
            assert page.stat().st_size < 1_000_000


class _NoEvidence:
    """Evidence of units that left next to nothing."""

    def open(self, unit: UnitId, attempt: int) -> AttemptEvidence:
        return self

    def files(self) -> MappingProxyType[str, int]:
        return MappingProxyType({"agent/prompt.txt": 9})

    def text(self, name: str, limit: int) -> Excerpt | None:
        return Excerpt("How many?")

    def capture_rows(self, table: str, limit: int) -> CaptureRows | None:
        return None

    def place(self, name: str) -> str:
        return name


def write_many(out: Path, number: int, evidence: EvidenceSource | None = None) -> Path:
    results: Callable[[], Iterator[UnitResult]] = lambda: many_results(number)  # noqa: E731
    record = make_record(list(results()))
    return write_report(
        out, record=record, tasks={}, results=results, evidence=evidence or _NoEvidence()
    )


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_units(tmp_path: Path) -> None:
    write_many(tmp_path / "warm", 5)
    peaks = []
    for number in (100, 800):
        tracemalloc.start()
        write_many(tmp_path / str(number), number)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    small, large = peaks
    assert large < small * 1.6 + 2_000_000


def test_a_store_that_goes_away_is_not_hidden(tmp_path: Path) -> None:
    class Away(_NoEvidence):
        def open(self, unit: UnitId, attempt: int) -> AttemptEvidence:
            raise StoreError("can't be reached")

    with pytest.raises(StoreError):
        write_many(tmp_path, 3, Away())


def test_writing_again_replaces_the_pages(tmp_path: Path) -> None:
    run = ReportedRun(tmp_path)
    run.add(make_task("t"), make_result("t", Verdict.ERROR, cause=Cause.INFRA))
    run.write()
    run.results[0] = make_result("t")
    text = run.write().read_text("utf-8")
    assert "ERROR" not in text
    assert "CORRECT" in page_of(tmp_path / "report/index.html", "t")
