"""The report in a real Chromium: works from disk, by keyboard, for everybody, and is inert."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor_grader.gates import GateSpec
from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import unit_id
from proctor_grader.report.page import write_report
from proctor_grader.report.source import StoreEvidence
from tests.make.hostile import ATTACKS, hostile_run
from tests.make.report import (
    COVERAGE,
    HISTORY,
    NOTICES,
    ReportedRun,
    make_record,
    many_results,
    small_run,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

MANY = 5_000
LIGHT, DARK = "light", "dark"

# What a reader sees of every text: its colour, and what it stands on once see-through layers are
# put over each other. WCAG 2.2, success criterion 1.4.3.
CONTRASTS = """() => {
  const parse = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return parts.length === 3 ? [...parts, 1] : parts;
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((c) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(parse(getComputedStyle(at).backgroundColor));
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest(".hidden, script")) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.closest("svg") ? style.fill : style.color);
    const paper = ground(element);
    const [a, b] = [light(over([...ink.slice(0, 3), ink[3] ?? 1], paper)), light(paper)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
}"""
# Names of what a screen reader announces as a picture or a control.
UNNAMED = """() => [...document.querySelectorAll(
    "svg[role=img], button, input, a[href], [role=region], summary")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.ariaLabel || each.textContent.trim() || each.labels?.length))
  .map((each) => each.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every outcome, every kind of evidence and a hostile unit."""
    run = hostile_run(small_run(tmp_path_factory.mktemp("run")))
    spec = GateSpec(Decimal(80))
    return run.write(spec, HISTORY, coverage=COVERAGE, notices=(*NOTICES, *ATTACKS))


@pytest.fixture(scope="module")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of thousands of units that left no evidence."""
    run = ReportedRun(tmp_path_factory.mktemp("large"))
    with StoreEvidence(run.store, run.keys) as evidence:
        return write_report(
            run.root / "report",
            record=make_record(list(many_results(MANY))),
            tasks={},
            results=lambda: many_results(MANY),
            evidence=evidence,
        )


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages of contexts with settings of their own; fails on whatever a page complains of."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def refuse(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    def open_page(path: Path, fragment: str = "", **settings: Any) -> Page:
        context = browser.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", refuse)
        page.on("request", lambda request: complaints.extend(_foreign(request.url)))
        page.goto(path.as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _foreign(url: str) -> list[str]:
    return [] if url.startswith("file://") else [f"request to {url}"]


def pages_of(index: Path) -> list[Path]:
    return [index, *sorted((index.parent / "units").iterdir())]


def unit_page(index: Path, task: str) -> Path:
    return index.parent / "units" / f"{unit_id(TaskId(task))}.html"


def listed(page: Page) -> list[str]:
    """Tasks of the rows that can be seen, in order."""
    texts: list[str] = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr')].filter(row => row.checkVisibility())"
        ".map(row => row.querySelector('.c-task a').textContent)"
    )
    return texts


class TestAlone:
    def test_every_page_opens_from_disk_without_a_request_or_a_complaint(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        for path in pages_of(report):
            page.goto(path.as_uri())
            assert page.title()

    def test_hostile_text_runs_nothing_and_looks_like_text(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        for path in pages_of(report):
            page.goto(path.as_uri())
            page.wait_for_timeout(20)
            assert page.evaluate("typeof window.hacked") == "undefined"
            assert page.url == path.as_uri()
            assert page.locator("h1").count() == 1
            assert page.locator("body").is_visible()
        evil = next(path for path in pages_of(report) if "script" in path.name)
        page.goto(evil.as_uri())
        assert "<script>window.hacked = 1; alert(1)</script>" in page.locator("h1").inner_text()
        for name in ("click", "data"):
            assert page.locator(".doc").get_by_role("link", name=name, exact=True).count() == 0
        assert page.locator(".doc").get_by_role("link", name="fine").count() == 1

    def test_links_lead_from_the_table_to_a_unit_and_back(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        page.get_by_role("link", name="net_margin").click()
        assert page.get_by_role("heading", level=1).inner_text() == (
            "Net margin of the spring campaign"
        )
        page.get_by_role("link", name="Next: failed_payments").click()
        assert page.locator("h1").inner_text() == "Failed payments that nobody retried"
        page.get_by_role("link", name="All units").click()
        assert page.url.endswith(f"index.html#{unit_id(TaskId('failed_payments'))}")

    def test_without_scripts_the_whole_table_can_be_read(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report, java_script_enabled=False)
        assert page.locator("#table tbody tr:visible").count() == 18
        assert page.locator("#controls").is_hidden()
        assert page.get_by_role("button").count() == 0


class TestKeyboard:
    def test_the_filter_narrows_and_says_so(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        assert page.get_by_role("status").inner_text() == "18 of 18 units fit"
        page.keyboard.press("/")
        page.keyboard.type("OFF warehouse")
        assert listed(page) == ["stock_value"]
        assert page.get_by_role("status").inner_text() == "1 of 18 units fit"
        page.keyboard.press("Escape")
        assert len(listed(page)) == 18

    def test_nothing_that_fits_leaves_an_empty_table(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        page.get_by_role("searchbox", name="Filter").fill("no such thing")
        assert listed(page) == []
        assert page.get_by_role("status").inner_text() == "0 of 18 units fit"

    def test_outcomes_are_switched_off_and_on(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        passed = page.get_by_role("button", name="passed 8")
        assert passed.get_attribute("aria-pressed") == "true"
        passed.focus()
        page.keyboard.press("Space")
        assert passed.get_attribute("aria-pressed") == "false"
        assert len(listed(page)) == 10
        page.keyboard.press("Enter")
        assert passed.get_attribute("aria-pressed") == "true"
        assert len(listed(page)) == 18

    def test_heads_sort_up_down_and_back(self, report: Path, opened: Callable[..., Page]) -> None:
        page = opened(report)
        first = listed(page)
        head = page.get_by_role("columnheader", name="Duration")
        head.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert listed(page)[0] == "year_end"
        assert listed(page)[-1] == "long_haul"
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        assert listed(page)[0] == "long_haul"
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") is None
        assert listed(page) == first

    def test_texts_sort_as_people_sort_them(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        page.get_by_role("columnheader", name="Task").get_by_role("button").click()
        tasks = [task for task in listed(page) if "script" not in task]
        assert tasks == sorted(tasks)

    def test_every_control_is_reached_in_reading_order_and_shows_it(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        reached = []
        for _ in range(32):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate("document.activeElement.textContent.trim().split('\\n')[0]")
            )
            assert page.evaluate(
                "getComputedStyle(document.activeElement).outlineStyle != 'none'"
            ), reached[-1]
        assert reached[0] == "Skip to the content"
        assert reached[1:6] == ["Result", "Units", "Plots", "Coverage", "Run"]
        for name in ("✓ passed 8", "Outcome", "Duration", "revenue_october"):
            assert any(each.startswith(name) for each in reached), name

    def test_the_skip_link_leads_past_the_head(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

    def test_long_texts_can_be_scrolled_by_keyboard(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        for path in pages_of(report):
            page.goto(path.as_uri())
            stuck = page.evaluate(
                "[...document.querySelectorAll('main *')].filter(each =>"
                " each.checkVisibility() && each.tabIndex < 0 && !each.closest('.hidden')"
                " && /auto|scroll/.test(getComputedStyle(each).overflow)"
                " && (each.scrollWidth > each.clientWidth + 1"
                " || each.scrollHeight > each.clientHeight + 1)).length"
            )
            assert stuck == 0, path.name


class TestAddresses:
    def test_the_view_is_part_of_the_address(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        page.get_by_role("searchbox").fill("October")
        page.get_by_role("button", name="failed 7").click()
        page.get_by_role("columnheader", name="Task").get_by_role("button").click()
        seen = listed(page)
        assert seen == ["churned_customers", "new_skus"]
        again = opened(report, "#" + page.url.partition("#")[2])
        assert listed(again) == seen
        assert again.get_by_role("searchbox").input_value() == "October"
        assert again.get_by_role("columnheader", name="Task").get_attribute("aria-sort")

    def test_a_link_to_a_unit_shows_its_row_whatever_was_filtered(
        self, large_report: Path, opened: Callable[..., Page]
    ) -> None:
        unit = unit_id(TaskId("task_04999"))
        page = opened(large_report, f"#{unit}")
        assert page.locator(f"#{unit}").is_visible()
        assert page.locator(f"#{unit}").evaluate(
            "row => { const box = row.getBoundingClientRect();"
            " return box.top >= 0 && box.bottom <= innerHeight }"
        )

    @pytest.mark.parametrize(
        "fragment", ["#%E0%A4%A", "#sort=99d", "#sort=x", "#without=odd", "#q=%00", "#<script>"]
    )
    def test_odd_addresses_do_no_harm(
        self, report: Path, opened: Callable[..., Page], fragment: str
    ) -> None:
        page = opened(report, fragment)
        assert page.get_by_role("status").inner_text().endswith("units fit")

    def test_a_check_has_an_address_of_its_own(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(unit_page(report, "revenue_october"))
        page.get_by_role("link", name="refunds").click()
        assert page.url.endswith("#check-3")


class TestForEverybody:
    def test_the_first_page_reads_well_aloud(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        tree = page.locator("body").aria_snapshot()
        for line in (
            '- link "Skip to the content"',
            "- banner:",
            '- navigation "On this page"',
            "- main:",
            "- contentinfo:",
            '- heading "northwind" [level=1]',
            '- heading "Not passed" [level=2]',
            '- img "8 passed, 7 failed, 1 ungraded, 1 error, 1 cancelled"',
            '- search "Units"',
            '- searchbox "Filter',
            "- status: 18 of 18 units fit",
            '- table "Units with their verdicts. Column heads sort."',
            '- columnheader "Duration"',
            '- img "Durations of stages"',
            'table "Gates: conditions on the finished run; each must hold"',
        ):
            assert line in tree, line
        assert 'row "failed PARTIAL revenue_october Net revenue in October read' in tree

    def test_a_unit_page_reads_well_aloud(self, report: Path, opened: Callable[..., Page]) -> None:
        page = opened(unit_page(report, "revenue_october"))
        tree = page.locator("body").aria_snapshot()
        for line in (
            '- heading "Net revenue in October" [level=1]',
            '- region "Answer"',
            "(satisfied net_revenue)",
            "(closest to refunds)",
            '- article "refunds failed"',
            'img "Allowed 41580 to 42420, expected 42000, closest 40210: outside."',
        ):
            assert line in tree, line

    def test_pictures_and_controls_have_names(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report)
        for path in pages_of(report):
            page.goto(path.as_uri())
            assert page.evaluate(UNNAMED) == [], path.name

    @pytest.mark.parametrize("scheme", [LIGHT, DARK])
    def test_all_text_can_be_told_from_its_ground(
        self, report: Path, opened: Callable[..., Page], scheme: str
    ) -> None:
        page = opened(report, color_scheme=scheme)
        for path in (
            report,
            unit_page(report, "revenue_october"),
            unit_page(report, "rebuild_fct_orders"),
            unit_page(report, "supplier_terms"),
        ):
            page.goto(path.as_uri())
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
            assert page.evaluate(CONTRASTS) == [], path.name

    def test_light_and_dark_differ_and_plots_go_along(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        seen = {}
        for scheme in (LIGHT, DARK):
            page = opened(report, color_scheme=scheme)
            seen[scheme] = page.evaluate(
                "[getComputedStyle(document.body).backgroundColor,"
                " getComputedStyle(document.querySelector('svg.plot text')).fill]"
            )
        assert seen[LIGHT][0] != seen[DARK][0]
        assert seen[LIGHT][1] != seen[DARK][1]

    @pytest.mark.parametrize("width", [320, 390, 768, 1280])
    @pytest.mark.parametrize("scheme", [LIGHT, DARK])
    def test_no_page_is_wider_than_its_window(
        self,
        report: Path,
        opened: Callable[..., Page],
        tmp_path: Path,
        scheme: str,
        width: int,
    ) -> None:
        page = opened(report, color_scheme=scheme, viewport={"width": width, "height": 800})
        for path in pages_of(report):
            page.goto(path.as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path.name
        picture = tmp_path / "page.png"
        page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 10_000

    def test_nothing_moves_for_those_who_ask_for_it(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(report, reduced_motion="reduce")
        assert page.evaluate(
            "[...document.querySelectorAll('*')].every(each => {"
            " const style = getComputedStyle(each);"
            " return style.transitionDuration === '0s' && style.scrollBehavior === 'auto' })"
        )


class TestPaper:
    def test_everything_is_printed(self, report: Path, opened: Callable[..., Page]) -> None:
        page = opened(report)
        page.get_by_role("searchbox").fill("October")
        assert page.pdf(format="A4").startswith(b"%PDF-")
        page.emulate_media(media="print", color_scheme="dark")
        assert len(listed(page)) == 18
        assert page.locator("#controls").is_hidden()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )

    def test_what_is_folded_is_opened_for_printing_and_closed_again(
        self, report: Path, opened: Callable[..., Page]
    ) -> None:
        page = opened(unit_page(report, "revenue_october"))
        closed = "document.querySelectorAll('details:not([open])').length"
        before = page.evaluate(closed)
        assert before > 0
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(closed) == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(closed) == before
        assert page.pdf(format="A4").startswith(b"%PDF-")


@pytest.mark.slow
class TestLargeRun:
    def test_thousands_of_units_can_be_worked_with(
        self, large_report: Path, opened: Callable[..., Page]
    ) -> None:
        started = time.monotonic()
        page = opened(large_report)
        assert len(listed(page)) == 200
        assert page.get_by_role("status").inner_text() == (
            "5,000 of 5,000 units fit, the first 200 are listed"
        )
        page.get_by_role("searchbox").fill("task_0499")
        page.get_by_text("10 of 5,000 units fit").wait_for()
        page.get_by_role("searchbox").fill("")
        page.get_by_text("5,000 of 5,000 units fit").wait_for()
        page.get_by_role("columnheader", name="Duration").get_by_role("button").click()
        page.get_by_role("button", name="List all 5,000").click()
        assert len(listed(page)) == MANY
        assert page.evaluate("document.activeElement.matches('.c-task a')")
        assert time.monotonic() - started < 60
