"""Pure: lists of names and texts that a unit's page shows of its task and its attempt."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from proctor_grader.jsontext import dump_json
from proctor_grader.report.display import CAUSE_TEXTS, duration, excerpt, plain
from proctor_grader.report.unit_text import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader.model.result import UnitResult
    from proctor_grader.model.task import Task

_FACT_SHOWN = 2_000
_NAMES_SHOWN = 200

Facts = tuple[tuple[str, str], ...]


def fact(data: Any) -> str:
    """Return a JSON value as people read it: texts and numbers plain, lists with commas."""
    if isinstance(data, str):
        return excerpt(data, _FACT_SHOWN)
    if isinstance(data, Decimal):
        return plain(data)
    if isinstance(data, (list, tuple)) and all(isinstance(each, str) for each in data):
        return excerpt(", ".join(data), _FACT_SHOWN)
    return excerpt(dump_json(data), _FACT_SHOWN)


def named(data: Mapping[str, Any]) -> Facts:
    """Return a JSON object as facts: `numbers_read` reads as `numbers read`."""
    return tuple((name.replace("_", " "), fact(value)) for name, value in data.items())


def task_facts(task: Task) -> Facts:
    """Return what a task's author wrote about it, the prompt and the doc apart."""
    capture = task.capture
    return _given(
        ("Id", task.id),
        ("Class", task.task_class.value),
        ("Kind", task.kind),
        ("Category", task.category),
        ("Tags", _list(task.tags)),
        ("Suite", f"{task.suite}, row {task.row}" if task.suite else ""),
        ("Why", excerpt(task.why, _FACT_SHOWN)),
        ("Gold, as written", excerpt(task.gt, _FACT_SHOWN)),
        ("Covers", _list(task.covers)),
        ("Builds", _list(task.builds)),
        ("Setup script", task.setup or ""),
        ("Teardown script", task.teardown or ""),
        ("Captures", f"{capture.mode.value} of {_list(capture.tables)}" if capture else ""),
    )


def attempt_facts(result: UnitResult, *, place: str) -> Facts:
    """Return what identifies an attempt and what it used.

    Args:
        result: of the unit.
        place: where the evidence lies; empty when there is none.
    """
    return _given(
        ("Unit", result.unit),
        ("Variant", result.variant),
        ("Trial", str(result.trial)),
        ("Attempt", str(result.attempt) if result.attempt else "none was started"),
        ("Cause", "" if result.cause is None else CAUSE_TEXTS[result.cause]),
        ("Reason", result.reason),
        ("Time in stages", duration(seconds_of(result))),
        *named(result.usage),
        ("Stored in", place),
    )


def _given(*pairs: tuple[str, str]) -> Facts:
    return tuple(pair for pair in pairs if pair[1])


def _list(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMES_SHOWN} more" if len(every) > _NAMES_SHOWN else ""
    return ", ".join(every[:_NAMES_SHOWN]) + more
