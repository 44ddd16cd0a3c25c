"""Replay files: a YAML or JSON map from task id to what is played back, read strictly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from proctor_grader.agents.replay import ReplayEntry, is_inside
from proctor_grader.errors import UserError
from proctor_grader.model.unit import DEFAULT_VARIANT
from proctor_grader.problems import ProblemLog, listed, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from proctor_grader.model.unit import Unit

_KEYS = ("answer", "sql", "files", "exit", "sleep")
_MAX_BYTES = 64 * 1024 * 1024
_MAX_EXIT = 255


@dataclass(frozen=True, slots=True)
class TaskRecording:
    """What is played back for a task: the same for every unit, or by variant or by trial."""

    entry: ReplayEntry | None = None
    variants: Mapping[str, ReplayEntry] = field(default_factory=dict)
    trials: tuple[ReplayEntry, ...] = ()

    def entry_for(self, variant: str, trial: int) -> ReplayEntry | None:
        """Return a unit's entry; None where the recording has none for it."""
        if self.trials:
            return self.trials[trial - 1] if trial <= len(self.trials) else None
        return self.variants.get(variant, self.entry)


@dataclass(frozen=True, slots=True)
class Recording:
    """A replay file's content by task id."""

    where: str
    tasks: Mapping[str, TaskRecording]

    def entry_for(self, unit: Unit) -> ReplayEntry:
        """Return a unit's entry; only for units that `refuse_missing` let pass."""
        entry = self.tasks[unit.task_id].entry_for(unit.variant, unit.trial)
        if entry is None:
            raise KeyError(unit.id)
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


class _Loader(yaml.SafeLoader):
    """YAML whose scalars are text, numbers or null: no dates, no yes and no, no twice-named key."""


_KEPT = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:null")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    loaded: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        # A task id is text, however much it looks like a number.
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be text", key_node.start_mark
            )
        if key in loaded:
            raise yaml.constructor.ConstructorError(
                None, None, f"duplicate key '{key}'", key_node.start_mark
            )
        loaded[key] = loader.construct_object(value_node, deep=True)
    return loaded


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load_recording(path: Path) -> Recording:
    """Load a replay file.

    Raises:
        UserError: it can't be read, or holds mistakes; all of them are told with their places.
    """
    document = _read(path)
    problems = ProblemLog()
    tasks: dict[str, TaskRecording] = {}
    if not isinstance(document, dict):
        problems.error(".", "must be a map from task id to an entry")
    else:
        for task_id, raw in document.items():
            tasks[task_id] = _parse_task(raw, task_id, problems)
    if problems.problems:
        told = "; ".join(f"{one.where}: {one.message}" for one in problems.problems[:20])
        more = len(problems.problems) - 20
        raise UserError(
            told + (f"; and {more} more" if more > 0 else ""),
            where=str(path),
            remedy="an entry may have answer, sql, files, exit and sleep",
        )
    return Recording(str(path), tasks)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"is larger than {_MAX_BYTES} bytes", where=str(path))
        text = path.read_text("utf-8-sig")
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader with fewer types
    except OSError as error:
        raise UserError(
            f"can't be read ({error.strerror})", where=str(path), remedy="name a replay file"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8", where=str(path)) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        reason = getattr(error, "problem", None) or type(error).__name__
        raise UserError(f"is no valid YAML ({reason})", where=f"{path}{line}") from error


def _parse_task(raw: Any, where: str, problems: ProblemLog) -> TaskRecording:
    if not isinstance(raw, dict):
        problems.error(where, "must be a map")
        return TaskRecording()
    own = {key: value for key, value in raw.items() if key not in ("variants", "trials")}
    entry = _parse_entry(own, where, problems) if own or len(raw) == 0 else None
    variants: dict[str, ReplayEntry] = {}
    trials: list[ReplayEntry] = []
    if "variants" in raw and "trials" in raw:
        problems.error(where, "has both variants and trials")
    given = raw.get("variants", {})
    if isinstance(given, dict):
        for name, one in given.items():
            variants[name] = _parse_entry(one, f"{where}.variants.{name}", problems)
    else:
        problems.error(f"{where}.variants", "must be a map from variant to entry")
    listed_trials = raw.get("trials", [])
    if isinstance(listed_trials, list):
        for index, one in enumerate(listed_trials):
            trials.append(_parse_entry(one, f"{where}.trials[{index}]", problems))
    else:
        problems.error(f"{where}.trials", "must be a list of entries")
    return TaskRecording(entry, variants, tuple(trials))


def _parse_entry(raw: Any, where: str, problems: ProblemLog) -> ReplayEntry:
    if not isinstance(raw, dict):
        problems.error(where, "must be a map")
        return ReplayEntry()
    for key in raw:
        if key not in _KEYS:
            problems.error(where, f"unknown key '{key}'{suggestion(key, _KEYS)}")
    return ReplayEntry(
        answer=_parse_answer(raw.get("answer"), f"{where}.answer", problems),
        sql=_parse_sql(raw.get("sql", []), f"{where}.sql", problems),
        files=_parse_files(raw.get("files", {}), f"{where}.files", problems),
        exit=_parse_exit(raw.get("exit", 0), f"{where}.exit", problems),
        sleep=_parse_sleep(raw.get("sleep", 0), f"{where}.sleep", problems),
    )


def _parse_answer(raw: Any, where: str, problems: ProblemLog) -> str | None:
    if raw is None or isinstance(raw, str):
        return raw
    problems.error(where, f'must be text (write it in quotes: "{raw}")')
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
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= _MAX_EXIT:
        return raw
    problems.error(where, "must be an integer from 0 to 255")
    return 0


def _parse_sleep(raw: Any, where: str, problems: ProblemLog) -> float:
    is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if is_number and math.isfinite(raw) and raw >= 0:
        return float(raw)
    problems.error(where, "must be a number of seconds, at least 0")
    return 0.0
