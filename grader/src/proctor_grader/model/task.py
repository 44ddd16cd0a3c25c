"""An eval set and its tasks, in the one form that all authoring formats are read into."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NewType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.criterion import Criterion

TaskId = NewType("TaskId", str)


class TaskClass(StrEnum):
    """What a task does to the warehouse."""

    READ = "read"
    WRITE = "write"


class CaptureMode(StrEnum):
    """How much of a table is kept before its branch is dropped."""

    FINGERPRINT = "fingerprint"
    SAMPLE = "fingerprint+sample"
    FULL = "full"


DEFAULT_SAMPLE_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Capture:
    """Table evidence to take from a branch.

    Attributes:
        tables: one to three plain identifiers joined by dots each; not empty, no repeats.
        sample_rows: as authored, at least 1; execution clamps it.
    """

    tables: tuple[str, ...]
    mode: CaptureMode = CaptureMode.FINGERPRINT
    sample_rows: int = DEFAULT_SAMPLE_ROWS

    def to_json(self) -> dict[str, Any]:
        """Return the normalised form."""
        return {
            "tables": list(self.tables),
            "mode": self.mode.value,
            "sample_rows": self.sample_rows,
        }


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """What a set says about its setup and teardown scripts.

    Attributes:
        timeout_seconds: for each script; None leaves it to the run.
        env_file: as authored, empty for none.
        env: the file's entries.
    """

    timeout_seconds: int | None = None
    env_file: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the normalised form; the entries of the env file are never shown."""
        return {"timeout_seconds": self.timeout_seconds, "env_file": self.env_file}


@dataclass(frozen=True, slots=True)
class Task:
    """One question or build job with what it is judged by.

    Attributes:
        prompt: exactly what the agent is told.
        doc: Markdown for people; an agent never gets it.
        setup: script path in the set, None without one; likewise `teardown`.
        suite: task id whose dataset row this is, None without a dataset; likewise `row`.
        gt: gold text for display.
    """

    id: TaskId
    title: str
    kind: str
    task_class: TaskClass
    prompt: str
    criteria: tuple[Criterion, ...]
    category: str = ""
    tags: tuple[str, ...] = ()
    suite: str | None = None
    row: str | None = None
    doc: str = ""
    why: str = ""
    covers: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    setup: str | None = None
    teardown: str | None = None
    capture: Capture | None = None
    gt: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the normalised form: prose is text, lists are lists, the absent is null."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "class": self.task_class.value,
            "category": self.category,
            "tags": list(self.tags),
            "suite": self.suite,
            "row": self.row,
            "prompt": self.prompt,
            "doc": self.doc,
            "why": self.why,
            "covers": list(self.covers),
            "builds": list(self.builds),
            "setup": self.setup,
            "teardown": self.teardown,
            "capture": None if self.capture is None else self.capture.to_json(),
            "criteria": [criterion.to_json() for criterion in self.criteria],
            "gt": self.gt,
        }


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A loaded set.

    Attributes:
        claude_md: name of the instruction file handed to agents, None without one.
        claude_md_text: its text, without a byte order mark.
        project_repo: `https://` URL (locally also a folder) of the project tree; empty for none.
        build_fingerprint: pinned digest of the warehouse; empty for none.
    """

    format: str
    name: str
    description: str
    tasks: tuple[Task, ...]
    claude_md: str | None = None
    claude_md_text: str = ""
    project_repo: str = ""
    build_fingerprint: str = ""
    setup: ScriptSettings = field(default_factory=ScriptSettings)

    def to_json(self) -> dict[str, Any]:
        """Return the normalised form without problems."""
        return {
            "format": self.format,
            "name": self.name,
            "description": self.description,
            "claude_md": self.claude_md,
            "project_repo": self.project_repo,
            "build_fingerprint": self.build_fingerprint,
            "setup": self.setup.to_json(),
            "tasks": [task.to_json() for task in self.tasks],
        }
