"""Which tasks run: the language of `--select` and `--exclude`, the same for all formats. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import Outcome
from proctor_grader.problems import suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from proctor_grader.model.task import Task

MAX_SUGGESTIONS = 50
"""Parts that get a suggestion; looking for one among 10,000 ids takes 0.1 s."""

_OUTCOMES = tuple(outcome.value for outcome in Outcome)
_FIELDS = ("id", "suite", "tag", "category", "kind", "class")
_METHODS = (*_FIELDS, "outcome")


class SelectionError(ValueError):
    """A selection is wrong or leaves nothing; its text holds all messages, one a line.

    Attributes:
        messages: what is wrong, in the order of the arguments.
    """

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = tuple(messages)
        super().__init__("\n".join(self.messages))


def select_tasks(
    tasks: Iterable[Task | Mapping[str, Any]],
    select: Sequence[str],
    exclude: Sequence[str],
    *,
    drawn: Collection[str] | None = None,
    runs: Sequence[Mapping[str, Any]] = (),
) -> list[str]:
    """Return the ids of the tasks to run, in the order of the set, each once.

    Args:
        tasks: the whole set, before any sampling; mappings need an `id` only.
        select: arguments that add up; none for all tasks.
        exclude: arguments whose tasks are left out.
        drawn: ids that a sampler left; None for all.
        runs: the set's finished runs, oldest first: `name`, and `outcomes` of each task's units
            by task id.

    Raises:
        SelectionError: an argument is wrong or matches nothing, or no task is left.

    Source: selection spec, sections 1 to 3.
    """
    matcher = _Matcher(_Index.of(tasks), runs)
    chosen = [matcher.argument("select", argument) for argument in select]
    dropped = [matcher.argument("exclude", argument) for argument in exclude]
    if matcher.messages:
        raise SelectionError(matcher.messages)
    ids = matcher.index.ids
    left = set[str]().union(*chosen) if chosen else set(ids)
    left.difference_update(*dropped)
    if drawn is not None:
        left &= set(drawn)
    if not left:
        raise SelectionError(["nothing left to run after select, exclude and sampling"])
    return [task_id for task_id in ids if task_id in left]


class _PartError(Exception):
    """One thing that is wrong with a part.

    Attributes:
        seen: how far the argument was looked at; parsing goes on behind.
    """

    def __init__(self, message: str, seen: int = 0) -> None:
        super().__init__(message)
        self.seen = seen


@dataclass(frozen=True, slots=True)
class _Part:
    """One condition: the text as written, its method (None for a value alone) and value."""

    text: str
    method: str | None
    value: str


@dataclass(slots=True)
class _Index:
    """Task ids by every value that a method asks for."""

    ids: dict[str, None] = field(default_factory=dict)
    by: dict[str, dict[str, set[str]]] = field(
        default_factory=lambda: {method: {} for method in _FIELDS}
    )

    @classmethod
    def of(cls, tasks: Iterable[Task | Mapping[str, Any]]) -> _Index:
        index = cls()
        for task in tasks:
            task_id, values = _described(task)
            index.ids[task_id] = None
            for method, value in values:
                if value:
                    index.by[method].setdefault(value, set()).add(task_id)
        return index


def _described(task: Task | Mapping[str, Any]) -> tuple[str, list[tuple[str, str | None]]]:
    """Return a task's id with every (method, value) that it can be asked for."""
    if isinstance(task, Mapping):
        task_id, suite = task["id"], task.get("suite")
        category, kind = task.get("category", ""), task.get("kind", "query")
        task_class, tags = task.get("class", "read"), task.get("tags", ())
    else:
        task_id, suite, category, kind = task.id, task.suite, task.category, task.kind
        task_class, tags = task.task_class.value, task.tags
    values = [("id", task_id), ("suite", suite), ("category", category), ("kind", kind)]
    return task_id, [*values, ("class", task_class), *(("tag", tag) for tag in tags)]


class _Matcher:
    """Evaluates arguments on the whole set; collects what is wrong with them."""

    def __init__(self, index: _Index, runs: Sequence[Mapping[str, Any]]) -> None:
        self.index = index
        self.messages: list[str] = []
        self._runs = runs
        self._suggested = 0

    def argument(self, option: str, argument: str) -> set[str]:
        """Return the ids of one argument's tasks; reports instead of raising."""
        whole = argument.strip()
        if whole in self.index.ids:
            return {whole}
        groups, faults = _parse(whole)
        self.messages.extend(f"{option} '{argument}': {fault}" for fault in faults)
        found: set[str] = set()
        for group in groups:
            matches = [self._part(option, part) for part in group]
            found |= matches[0].intersection(*matches[1:]) if matches else set()
        return found

    def _part(self, option: str, part: _Part) -> set[str]:
        try:
            found = self._matches(part)
        except _PartError as error:
            self.messages.append(f"{option} '{part.text}': {error}")
            return set()
        return found

    def _matches(self, part: _Part) -> set[str]:
        if part.method is None:
            by_id, by_suite = self.index.by["id"], self.index.by["suite"]
            found = by_id.get(part.value, set()) | by_suite.get(part.value, set())
            known: Iterable[str] = [*by_id, *by_suite]
        elif part.method == "outcome":
            return self._outcome(part)
        elif part.method in self.index.by:
            values = self.index.by[part.method]
            found, known = values.get(part.value, set()), values
        elif part.text in self.index.ids:
            return {part.text}
        else:
            near = self._near(part.method, _METHODS) or self._near(part.text, self.index.ids)
            raise _PartError(f"unknown selection method '{part.method}'{near}")
        if not part.value:
            raise _PartError("the value is empty")
        if not found:
            raise _PartError(f"matches nothing{self._near(part.value, known)}")
        return found

    def _outcome(self, part: _Part) -> set[str]:
        outcome, at, run_name = part.value.partition("@")
        if not outcome:
            raise _PartError("the outcome is empty")
        if at and not run_name:
            raise _PartError("the name of the run after @ is empty")
        if outcome not in _OUTCOMES:
            known = ", ".join(_OUTCOMES)
            near = self._near(outcome, _OUTCOMES)
            raise _PartError(f"unknown outcome '{outcome}' (one of {known}){near}")
        run = self._run(run_name)
        found = {
            task_id
            for task_id, outcomes in run["outcomes"].items()
            if task_id in self.index.ids and outcome in outcomes
        }
        if not found:
            raise _PartError("matches nothing")
        return found

    def _run(self, name: str) -> Mapping[str, Any]:
        for run in self._runs[::-1]:
            if not name or run["name"] == name:
                return run
        if not name:
            raise _PartError("no such run: the set has no finished run yet")
        near = self._near(name, [run["name"] for run in self._runs])
        raise _PartError(f"no such run '{name}'{near}")

    def _near(self, word: str, known: Iterable[str]) -> str:
        if self._suggested >= MAX_SUGGESTIONS:
            return ""
        self._suggested += 1
        return suggestion(word, known)


def _parse(text: str) -> tuple[list[list[_Part]], list[str]]:
    """Return the groups of an expression (any of them, each all of its parts) and its faults."""
    if not text:
        return [], ["the selection is empty"]
    groups: list[list[_Part]] = [[]]
    faults: list[str] = []
    position = 0
    while True:
        try:
            part, position = _parse_part(text, position)
            groups[-1].append(part)
        except _PartError as error:
            faults.append(str(error))
            position = _end_of_bare(text, error.seen)
        if position == len(text):
            return groups, faults
        if text[position] == ",":
            position += 1
        else:
            groups.append([])
            while text[position].isspace():
                position += 1


def _end_of_bare(text: str, start: int) -> int:
    """Return where the next blank or comma is, or the text's end."""
    position = start
    while position < len(text) and text[position] != "," and not text[position].isspace():
        position += 1
    return position


def _parse_part(text: str, start: int) -> tuple[_Part, int]:
    """Return the part that begins at `start` and where it ends."""
    position = start
    method: str | None = None
    while position < len(text) and text[position] != "," and not text[position].isspace():
        if text[position] == '"':
            value_start = start if method is None else start + len(method) + 1
            if position != value_start:
                raise _PartError("unbalanced quotes: one is inside a bare value", position)
            value, end = _parse_quoted(text, position)
            if not value:
                raise _PartError("a value in quotes is empty", end)
            return _Part(text[start:end], method, value), end
        if text[position] == ":" and method is None:
            method = text[start:position]
        position += 1
    written = text[start:position]
    if not written:
        raise _PartError("a part is empty (write no blank beside a comma)", position)
    value = written if method is None else written[len(method) + 1 :]
    return _Part(written, method, value), position


def _parse_quoted(text: str, start: int) -> tuple[str, int]:
    """Return the text in the quotes that open at `start` and where it ends."""
    position = start + 1
    while True:
        position = text.find('"', position)
        if position < 0:
            raise _PartError("unbalanced quotes: one is not closed", len(text))
        if text[position : position + 2] != '""':
            break
        position += 2
    end = position + 1
    if end < len(text) and text[end] != "," and not text[end].isspace():
        raise _PartError("unbalanced quotes: there is text right after a closing one", end)
    return text[start + 1 : position].replace('""', '"'), end
