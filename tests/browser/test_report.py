"""The report in a real Chromium: works from disk and by keyboard, and hostile text is inert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import unit_id
from tests.browser.reportpage import listed, pages_of, unit_page

if TYPE_CHECKING:
    from playwright.sync_api import Page


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
