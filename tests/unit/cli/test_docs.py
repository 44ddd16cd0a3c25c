"""The pages for users say what the code does: examples are run, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from proctor_grader import extract_numbers, grade_checks, load_set
from proctor_grader.agents.recording import load_recording
from proctor_grader.numerals import render_decimal
from proctor_grader.report.table import COLUMNS
from proctor_operator.cli.app import app

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def rows(page: str, *head: str) -> Iterator[tuple[str, ...]]:
    """Rows of every table on a page that has these columns."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    inside = False
    for line in lines:
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        if cells == head:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not set("".join(cells)) <= set("-"):
            yield cells


def quoted(cell: str) -> list[str]:
    """The examples in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def numbers_read() -> Iterator[pytest.ParameterSet]:
    for cell, numbers in rows("numbers.md", "text", "numbers"):
        for text in quoted(cell):
            yield pytest.param(text, numbers, id=text)


@pytest.mark.parametrize(("text", "numbers"), list(numbers_read()))
def test_numbers_are_read_as_the_page_says(text: str, numbers: str) -> None:
    assert ", ".join(map(render_decimal, extract_numbers(text).values)) == numbers


def verdicts() -> Iterator[pytest.ParameterSet]:
    for value, tolerance, answer, verdict in rows(
        "numbers.md", "value", "tolerance", "answer", "verdict"
    ):
        (text,) = quoted(answer)
        yield pytest.param(value, tolerance, text, verdict, id=f"{text} for {value}")


@pytest.mark.parametrize(("value", "tolerance", "text", "verdict"), list(verdicts()))
def test_answers_are_judged_as_the_page_says(
    value: str, tolerance: str, text: str, verdict: str
) -> None:
    check = {"value": Decimal(value), "tolerance": Decimal(tolerance)}
    assert grade_checks(text, [check]).verdict.value == verdict


def test_tables_with_examples_were_found() -> None:
    assert len(list(numbers_read())) > 60
    assert len(list(verdicts())) > 8


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    for link in links:
        file, _, heading = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
            assert heading in anchors, link


def test_example_set_loads_but_for_its_prompt_files(tmp_path: Path) -> None:
    text = (DOCS / "eval-json.md").read_text("utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "eval.json").write_text(example)
    loaded = load_set(tmp_path)
    assert [problem.where for problem in loaded.errors] == ["tasks[1].prompt", "tasks[2].prompt"]
    assert loaded.warnings == ()
    for problem in loaded.errors:
        assert f"error {problem.where}: {problem.message}" in text


def test_example_replay_file_is_one(tmp_path: Path) -> None:
    text = (DOCS / "agents.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert isinstance(yaml.safe_load(example), dict)
    path = tmp_path / "replay.yaml"
    path.write_text(example)
    recording = load_recording(path)
    assert list(recording.tasks) == ["order_count", "build_daily", "flaky", "crashing"]


def test_every_column_of_the_parquet_file_is_named() -> None:
    text = (DOCS / "results.md").read_text("utf-8")
    for name in COLUMNS:
        short = name.removeprefix("seconds")
        assert f"`{name}`" in text or f"`{short}`" in text, name


def test_every_verb_and_option_on_the_pages_is_one() -> None:
    known = {str(command.name) for command in app.registered_commands}
    options = set(re.findall(r"--[a-z-]+", (DOCS / "reference" / "cli.md").read_text("utf-8")))
    foreign = {"--verbose", "--output-format", "--print"}
    for page in PAGES:
        text = page.read_text("utf-8")
        assert set(re.findall(r"`proctor ([a-z]+)", text)) <= known, page
        assert set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text)) - foreign <= options, page
