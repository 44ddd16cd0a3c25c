"""What the tests of the report look at on a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import unit_id

if TYPE_CHECKING:
    from playwright.sync_api import Page


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
