"""A manifest's document -> tasks, without a disk: exact words and order of what is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from proctor_grader.formats.eval_json import parse_manifest
from proctor_grader.formats.repo import FaultKind, FileFault
from proctor_grader.formats.strict_json import parse_json
from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion, NumberCriterion
from proctor_grader.model.task import Capture, CaptureMode, Task, TaskClass
from proctor_grader.problems import ProblemLog
from tests.unit.formats.setfolder import told

if TYPE_CHECKING:
    from proctor_grader.formats.eval_json import Manifest


@dataclass
class MemoryFiles:
    """Files that a manifest may name; remembers which were asked for."""

    texts: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def read_text(self, path: str) -> str | FileFault:
        self.asked.append(path)
        text = self.texts.get(path)
        return FileFault(FaultKind.MISSING, path) if text is None else text

    def find(self, path: str) -> FileFault | None:
        self.asked.append(path)
        return None if path in self.texts else FileFault(FaultKind.MISSING, path)


def parse(
    text: str, files: MemoryFiles | None = None
) -> tuple[Manifest, list[tuple[str, str]], list[str]]:
    problems = ProblemLog()
    files = files or MemoryFiles()
    document = parse_json(text)
    assert isinstance(document, dict)
    manifest = parse_manifest(document, files, "the-folder", problems)
    return manifest, told(problems.problems), files.asked


def test_a_whole_task() -> None:
    files = MemoryFiles(
        {"up.sh": "", "down.py": "", "prompts/b.txt": "Build it.", "docs/b.md": "d"}
    )
    manifest, problems, asked = parse(
        """{"tasks": [{"id": " b ", "class": "write", "kind": "build", "title": "B", "why": "w",
            "covers": ["raw.a"], "builds": ["m.b"], "setup": "up.sh", "teardown": "down.py",
            "gt": 12, "grade": {"kind": "model_rebuilt", "model": "m.b", "expect": {"row_count": 3,
            "row_count_tolerance": 0.10, "grain": ["id"], "columns": ["id", "Net Total"]}},
            "capture": {"tables": ["m.b", "m.c"], "mode": "full", "sample_rows": 7}}]}""",
        files,
    )
    assert problems == []
    assert manifest.tasks == (
        Task(
            id="b",  # type: ignore[arg-type]  # a test's id
            title="B",
            kind="build",
            task_class=TaskClass.WRITE,
            prompt="Build it.",
            criteria=(
                ModelRebuiltCriterion(
                    "m.b", ModelExpectation(3, Decimal("0.10"), ("id",), ("id", "Net Total"))
                ),
            ),
            doc="d",
            why="w",
            covers=("raw.a",),
            builds=("m.b",),
            setup="up.sh",
            teardown="down.py",
            capture=Capture(("m.b", "m.c"), CaptureMode.FULL, 7),
            gt="12",
        ),
    )
    assert asked == ["prompts/b.txt", "docs/b.md", "up.sh", "down.py"]


def test_defaults_reach_checks_and_gold() -> None:
    manifest, problems, _ = parse(
        """{"defaults": {"tolerance": "0.2"}, "tasks": [
            {"id": "a", "prompt_text": "x", "gt": "$1,000"},
            {"id": "b", "prompt_text": "x", "checks": [{"value": 1e1}, {"value": 2, "name": "n",
             "tolerance": 0}]}]}"""
    )
    assert problems == []
    assert [task.criteria for task in manifest.tasks] == [
        (NumberCriterion("answer", Decimal(1000), Decimal("0.2")),),
        (
            NumberCriterion("answer", Decimal(10), Decimal("0.2")),
            NumberCriterion("n", Decimal(2), Decimal(0)),
        ),
    ]
    assert manifest.name == "the-folder"


@pytest.mark.parametrize(
    ("task", "asked"),
    [
        pytest.param('"prompt_text": "x", "prompt": "p"', ["docs/a.md"], id="text-is-enough"),
        pytest.param('"prompt_text": 5, "prompt": "p"', ["docs/a.md"], id="text-of-a-wrong-type"),
        pytest.param('"prompt": 5', ["docs/a.md"], id="path-of-a-wrong-type"),
        pytest.param('"prompt": "eval.json"', ["docs/a.md"], id="manifest"),
        pytest.param('"doc": null', ["prompts/a.txt"], id="doc-of-a-wrong-type"),
        pytest.param('"setup": "s"', ["prompts/a.txt", "docs/a.md"], id="script-of-a-read-task"),
        pytest.param('"setup": "s", "class": "x"', ["prompts/a.txt", "docs/a.md"], id="no-class"),
    ],
)
def test_files_that_are_not_looked_at(task: str, asked: list[str]) -> None:
    assert parse('{"tasks": [{"id": "a", "gt": "1", %s}]}' % task)[2] == asked  # noqa: UP031  # braces


def test_exact_words_in_the_order_of_the_keys() -> None:
    _, problems, _ = parse(
        """{"nmae": 1, "description": [], "build_fingerprint": "fp-1", "defaults": {"klass": 1,
            "class": 5}, "setup": {"x": 1}, "tasks": [
            {"id": 7, "class": "x", "why": null, "grade": {"kind": "x"}},
            {"id": "b", "prompt_text": "x", "gt": "12 apples", "colour": 1}]}"""
    )
    assert problems == [
        ("nmae", "unknown key 'nmae' (did you mean 'name'?)"),
        ("description", "description must be a string (found list)"),
        (
            "build_fingerprint",
            "build_fingerprint 'fp-1' can never match a warehouse"
            " (expected fp- and 32 lower-case hex digits)",
        ),
        ("defaults.klass", "unknown key 'klass' (did you mean 'class'?)"),
        ("defaults.class", "defaults.class must be one of read, write"),
        ("setup", "unsupported setup keys: x"),
        ("tasks[0].id", "task id 7 is a number: its text is used"),
        ("tasks[0].class", "task 7: class must be one of read, write"),
        ("tasks[0].why", "task 7: why must be a string (found null)"),
        ("tasks[0].prompt", "task 7: prompt file missing: prompts/7.txt"),
        ("tasks[0].grade.kind", "task 7: unknown grade kind 'x' (one of checks, model_rebuilt)"),
        ("tasks[1].colour", "task b: unknown key 'colour'"),
        ("tasks[1].gt", "task b: gt is no plain number, so the task is UNGRADED: give it checks"),
    ]


def test_no_message_holds_a_gold() -> None:
    _, problems, _ = parse(
        """{"tasks": [{"id": "a", "prompt_text": "x", "gt": "secret 4711"},
            {"id": "b", "prompt_text": "x", "checks": [{"value": "4711 secret"}]}]}"""
    )
    assert len(problems) == 2
    assert not any("4711" in message for _, message in problems)
