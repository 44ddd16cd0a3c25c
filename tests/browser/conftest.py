"""Reports to look at, and pages that complain of nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor_grader.gates import GateSpec
from proctor_grader.report.page import write_report
from proctor_grader.report.source import StoreEvidence
from tests.make.example_run import COVERAGE, HISTORY, NOTICES, small_run
from tests.make.hostile import ATTACKS, hostile_run
from tests.make.report import ReportedRun, make_record, many_results

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

MANY = 5_000


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every outcome, every kind of evidence and a hostile unit."""
    run = hostile_run(small_run(tmp_path_factory.mktemp("run")))
    spec = GateSpec(Decimal(80))
    return run.write(spec, HISTORY, coverage=COVERAGE, notices=(*NOTICES, *ATTACKS))


@pytest.fixture(scope="session")
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
