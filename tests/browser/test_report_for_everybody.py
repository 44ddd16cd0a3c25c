"""The report in a real Chromium: for every reader, screen, colour scheme, on paper, and large."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.reportpage import listed, pages_of, unit_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

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
