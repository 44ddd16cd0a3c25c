"""Replay files: a YAML or JSON map from task id to what is played back, read strictly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proctor_grader.agents.document import load_document
from proctor_grader.agents.replay import ReplayEntry, is_inside
from proctor_grader.errors import UserError
from proctor_grader.model.unit import DEFAULT_VARIANT
from proctor_grader.problems import ProblemLog, listed, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from proctor_grader.model.unit import Unit

_KEYS = ("answer", "sql", "files", "exit", "sleep")
_ARMS = ("variants", "trials")
_MAX_EXIT = 255
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TaskRecording:
    """What is played back for a task.

    Attributes:
        entry: for every unit that has none of its own; None where there is no such entry.
        variants: by the variant's name.
        trials: the first for trial 1, and so on.
    """

    entry: ReplayEntry | None = None
    variants: Mapping[str, ReplayEntry] = field(default_factory=dict)
    trials: tuple[ReplayEntry, ...] = ()

    def entry_for(self, variant: str, trial: int) -> ReplayEntry | None:
        """Return a unit's entry; None where the recording has none for it."""
        if trial <= len(self.trials):
            return self.trials[trial - 1]
        return self.variants.get(variant, self.entry)


@dataclass(frozen=True, slots=True)
class Recording:
    """A replay file's content by task id."""

    where: str
    tasks: Mapping[str, TaskRecording]

    def entry_for(self, unit: Unit) -> ReplayEntry:
        """Return a unit's entry.

        Raises:
            UserError: there is none; a run asks `refuse_missing` before it starts.
        """
        self.refuse_missing([unit])
        entry = self.tasks[unit.task_id].entry_for(unit.variant, unit.trial)
        if entry is None:
            raise LookupError(unit.id)
        return entry

    def refuse_missing(self, units: Iterable[Unit]) -> None:
        """Refuse to start a run for which something was never recorded.

        Raises:
            UserError: names the tasks without an entry.
        """
        missing = []
        for unit in units:
            task = self.tasks.get(unit.task_id)
            if task is None or task.entry_for(unit.variant, unit.trial) is None:
                arm = "" if unit.variant == DEFAULT_VARIANT else f" variant '{unit.variant}'"
                trial = f" trial {unit.trial}" if unit.trial > 1 else ""
                missing.append(f"'{unit.task_id}'{arm}{trial}")
        if missing:
            raise UserError(
                f"no entry for {listed(missing)}",
                where=self.where,
                remedy="record them, or leave them out with --exclude",
            )


def load_recording(path: Path) -> Recording:
    """Load a replay file.

    Raises:
        UserError: it can't be read, or holds mistakes; all of them are told with their places.
    """
    document = load_document(path)
    problems = ProblemLog()
    tasks: dict[str, TaskRecording] = {}
    if not isinstance(document, dict):
        problems.error(".", "must be a map from task id to an entry")
    else:
        for task_id, raw in document.items():
            tasks[task_id] = _parse_task(raw, task_id, problems)
    if problems.problems:
        told = "; ".join(f"{one.where}: {one.message}" for one in problems.problems[:_SHOWN])
        more = len(problems.problems) - _SHOWN
        raise UserError(
            told + (f"; and {more} more" if more > 0 else ""),
            where=str(path),
            remedy="an entry may have answer, sql, files, exit and sleep",
        )
    return Recording(str(path), tasks)


def _parse_task(raw: Any, where: str, problems: ProblemLog) -> TaskRecording:
    if not isinstance(raw, dict):
        problems.error(where, "must be a map")
        return TaskRecording()
    own = {key: value for key, value in raw.items() if key not in _ARMS}
    entry = None
    if own or not raw:
        entry = _parse_entry(own, where, problems, known=(*_KEYS, *_ARMS))
    if all(arm in raw for arm in _ARMS):
        problems.error(where, "has both variants and trials")
    variants = raw.get("variants", {})
    if not isinstance(variants, dict):
        problems.error(f"{where}.variants", "must be a map from variant to entry")
        variants = {}
    trials = raw.get("trials", [])
    if not isinstance(trials, list):
        problems.error(f"{where}.trials", "must be a list of entries")
        trials = []
    return TaskRecording(
        entry,
        {
            name: _parse_entry(one, f"{where}.variants.{name}", problems)
            for name, one in variants.items()
        },
        tuple(
            _parse_entry(one, f"{where}.trials[{index}]", problems)
            for index, one in enumerate(trials)
        ),
    )


def _parse_entry(
    raw: Any, where: str, problems: ProblemLog, known: tuple[str, ...] = _KEYS
) -> ReplayEntry:
    if not isinstance(raw, dict):
        problems.error(where, "must be a map")
        return ReplayEntry()
    for key in raw:
        if key not in _KEYS:
            problems.error(where, f"unknown key '{key}'{suggestion(key, known)}")
    return ReplayEntry(
        answer=_parse_answer(raw.get("answer"), f"{where}.answer", problems),
        sql=_parse_sql(raw.get("sql", []), f"{where}.sql", problems),
        files=_parse_files(raw.get("files", {}), f"{where}.files", problems),
        exit=_parse_exit(raw.get("exit", "0"), f"{where}.exit", problems),
        sleep=_parse_sleep(raw.get("sleep", "0"), f"{where}.sleep", problems),
    )


def _parse_answer(raw: Any, where: str, problems: ProblemLog) -> str | None:
    if raw is None or isinstance(raw, str):
        return raw
    problems.error(where, "must be text")
    return None


def _parse_sql(raw: Any, where: str, problems: ProblemLog) -> tuple[str, ...]:
    statements = [raw] if isinstance(raw, str) else raw
    if not isinstance(statements, list) or not all(isinstance(one, str) for one in statements):
        problems.error(where, "must be a list of SQL texts")
        return ()
    return tuple(statements)


def _parse_files(raw: Any, where: str, problems: ProblemLog) -> dict[str, str]:
    if not isinstance(raw, dict):
        problems.error(where, "must be a map from path to text")
        return {}
    for name, text in raw.items():
        if not is_inside(name):
            problems.error(where, f"path '{name}' must stay inside the working directory")
        if not isinstance(text, str):
            problems.error(f"{where}.{name}", "must be text")
    return {name: text for name, text in raw.items() if isinstance(text, str)}


def _parse_exit(raw: Any, where: str, problems: ProblemLog) -> int:
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and int(raw) <= _MAX_EXIT:
        return int(raw)
    problems.error(where, f"must be an integer from 0 to {_MAX_EXIT}")
    return 0


def _parse_sleep(raw: Any, where: str, problems: ProblemLog) -> float:
    try:
        seconds = float(raw) if isinstance(raw, str) else math.nan
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds) and seconds >= 0:
        return seconds
    problems.error(where, "must be a number of seconds, at least 0")
    return 0.0
