"""One unit's page: `load_unit` reads what it shows, `render_unit` lays it out and is pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import ANSWER_SHOWN
from proctor_grader.model.unit import Stage
from proctor_grader.report import source
from proctor_grader.report.answer import answer_pieces
from proctor_grader.report.capture_view import capture_view
from proctor_grader.report.check_view import check_view
from proctor_grader.report.markdown import render_markdown
from proctor_grader.report.pages import template
from proctor_grader.report.timeline import timeline_of
from proctor_grader.report.transcript import (
    ENTRIES_SHOWN,
    looks_like_stream,
    parse_events,
    parse_transcript,
)
from proctor_grader.report.unit_facts import attempt_facts, named, task_facts
from proctor_grader.report.unit_text import explanation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.result import UnitResult
    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.task import Task
    from proctor_grader.model.unit import UnitId
    from proctor_grader.report.capture_view import CaptureView
    from proctor_grader.report.source import EvidenceSource, Excerpt
    from proctor_grader.report.table import CaptureRows

CAPTURE_ROWS_SHOWN = 20
_CAPTURES_SHOWN = 20
_LIMITS = {
    source.PROMPT: 64 * 1024,
    source.TRANSCRIPT: 512 * 1024,
    source.EVENTS: 256 * 1024,
    source.STDOUT: 64 * 1024,
    source.STDERR: 64 * 1024,
    source.SETUP_LOG: 64 * 1024,
    source.TEARDOWN_LOG: 64 * 1024,
}
_LOGS = {
    source.SETUP_LOG: "Setup script",
    source.STDOUT: "Agent, standard output",
    source.STDERR: "Agent, standard error",
    source.TEARDOWN_LOG: "Teardown script",
}
_PAGE_NAME = re.compile(r"[a-z0-9-]{1,63}")


def page_name(unit: UnitId) -> str:
    """Return a unit's file name below `units/`; an id that is none of ours can't leave it."""
    if _PAGE_NAME.fullmatch(unit):
        return f"{unit}.html"
    return f"{sha256(unit.encode('utf-8', 'surrogatepass')).hexdigest()}.html"


@dataclass(frozen=True, slots=True)
class UnitMaterial:
    """All that a unit's page shows, read and bounded.

    Attributes:
        task: None when the set does not hold it any more.
        files: name -> size in bytes of all that the attempt left.
        texts: by name, those that are there.
        captures: first rows by table; None where no file was kept.
        places: where the whole of a file lies, by name.
    """

    result: UnitResult
    task: Task | None = None
    files: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, Excerpt] = field(default_factory=dict)
    captures: Mapping[str, CaptureRows | None] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A unit that a page links to."""

    unit: UnitId
    task: str

    @property
    def page(self) -> str:
        """File name of its page."""
        return page_name(self.unit)


def load_unit(result: UnitResult, task: Task | None, evidence: EvidenceSource) -> UnitMaterial:
    """Read what a unit's page shows, each text within its limit."""
    attempt = evidence.open(result.unit, result.attempt)
    files = attempt.files()
    texts = {
        name: text
        for name, limit in _LIMITS.items()
        if name in files and (text := attempt.text(name, limit)) is not None
    }
    tables = list(result.captures or {})[:_CAPTURES_SHOWN]
    return UnitMaterial(
        result=result,
        task=task,
        files=files,
        texts=texts,
        captures={table: attempt.capture_rows(table, CAPTURE_ROWS_SHOWN) for table in tables},
        places={name: attempt.place(name) for name in files},
    )


def render_unit(
    material: UnitMaterial,
    record: RunRecord,
    *,
    previous: Neighbour | None = None,
    following: Neighbour | None = None,
) -> str:
    """Return the page; what it shows is bounded, so its length is."""
    result, task = material.result, material.task
    context: dict[str, Any] = {
        "root": "../",
        "record": record,
        "result": result,
        "task": task,
        "title": task.title if task else result.task,
        "why": explanation(result),
        "previous": previous,
        "following": following,
        "prompt": _prompt(material),
        "pieces": None if result.answer is None else answer_pieces(result.answer, result.items),
        "answer_cut": result.answer is not None and len(result.answer) >= ANSWER_SHOWN,
        "checks": [check_view(item) for item in result.items],
        "stages": timeline_of(result.stages),
        "agent_stage": result.stages.get(Stage.AGENT.value),
        "conversation": _conversation(material),
        "events": _events(material),
        "captures": _captures(material),
        "logs": _logs(material),
        "doc": render_markdown(task.doc) if task and task.doc.strip() else None,
        "files": _files(material),
        "task_facts": task_facts(task) if task else (),
        "attempt_facts": attempt_facts(result, place=_place(material)),
        "detail_facts": named(result.details),
        "several_variants": len(record.totals) > 1,
    }
    return template("unit.html.j2").render(context)


def _prompt(material: UnitMaterial) -> Excerpt | None:
    """What the agent was told, with the run's preamble; else the task's own words."""
    stored = material.texts.get(source.PROMPT)
    if stored is not None or material.task is None:
        return stored
    return source.excerpt_of(
        material.task.prompt.encode("utf-8", "replace"), _LIMITS[source.PROMPT]
    )


@dataclass(frozen=True, slots=True)
class _Steps:
    """A recording's beginning and end as steps, with what was left out between them."""

    name: str
    head: list[Any]
    tail: list[Any]
    left_out_bytes: int
    steps_cut: bool


def _conversation(material: UnitMaterial) -> _Steps | None:
    """The transcript; without one a stream-json standard output, as grading does it."""
    text = material.texts.get(source.TRANSCRIPT)
    if text is not None:
        return _steps(source.TRANSCRIPT, text, parse_transcript)
    output = material.texts.get(source.STDOUT)
    if output is not None and looks_like_stream(output.head):
        return _steps(source.STDOUT, output, parse_transcript)
    return None


def _events(material: UnitMaterial) -> _Steps | None:
    text = material.texts.get(source.EVENTS)
    return None if text is None else _steps(source.EVENTS, text, parse_events)


def _steps(name: str, text: Excerpt, parse: Any) -> _Steps:
    """Parse both ends of a recording; a line that was cut in two is left out."""
    whole = not text.left_out_bytes
    begin = text.head if whole else text.head.rpartition("\n")[0]
    end = "" if whole else text.tail.partition("\n")[2]
    head, tail = list(parse(begin)), list(parse(end))
    room = ENTRIES_SHOWN - min(len(tail), ENTRIES_SHOWN // 4)
    return _Steps(
        name=name,
        head=head[:room],
        tail=tail[-ENTRIES_SHOWN // 4 :],
        left_out_bytes=text.left_out_bytes,
        steps_cut=len(head) > room or len(tail) > ENTRIES_SHOWN // 4,
    )


def _captures(material: UnitMaterial) -> list[CaptureView]:
    summaries = material.result.captures or {}
    return [
        capture_view(table, summaries[table], rows) for table, rows in material.captures.items()
    ]


def _logs(material: UnitMaterial) -> list[tuple[str, str, Excerpt]]:
    return [
        (name, label, material.texts[name])
        for name, label in _LOGS.items()
        if name in material.texts and material.texts[name].size_bytes
    ]


def _place(material: UnitMaterial) -> str:
    """The folder that all of the attempt's evidence lies in."""
    return next((place.removesuffix(name) for name, place in material.places.items()), "")


def _files(material: UnitMaterial) -> list[tuple[str, int, str]]:
    """What the attempt left: name, size, and the digest of what grading read."""
    digests = material.result.evidence
    listed = []
    for name, size_bytes in sorted(material.files.items()):
        place = material.places.get(name, "")
        digest = next((d for key, d in digests.items() if place.endswith(key)), "")
        listed.append((name, size_bytes, digest))
    return listed
