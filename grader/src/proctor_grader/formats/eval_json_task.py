"""One task of the eval-json format: its identity, prompt, doc and scripts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from proctor_grader.contract import MANIFEST_FILE
from proctor_grader.formats.eval_json_criteria import read_grading
from proctor_grader.formats.eval_json_table import read_capture, read_tables
from proctor_grader.formats.exact import is_integer
from proctor_grader.formats.paths import escapes, is_relative, segments
from proctor_grader.formats.place import Place, fault_message
from proctor_grader.formats.repo import FaultKind, FileFault
from proctor_grader.formats.strict_json import JsonNumber, type_name
from proctor_grader.identifiers import has_control_character
from proctor_grader.model.task import Task, TaskClass, TaskId

if TYPE_CHECKING:
    from proctor_grader.formats.repo import SetFiles
    from proctor_grader.formats.strict_json import JsonObject, JsonValue

MAX_ID_CHARACTERS = 200

_KEYS = (
    "id",
    "class",
    "kind",
    "title",
    "why",
    "prompt",
    "prompt_text",
    "doc",
    "gt",
    "checks",
    "grade",
    "covers",
    "builds",
    "capture",
    "setup",
    "teardown",
)
# The id makes no path, or nothing is there: a doc that nobody named is no fault.
_ABSENT_DEFAULT_DOC = frozenset({FaultKind.MISSING, FaultKind.NOT_RELATIVE, FaultKind.ESCAPES})
_CLASSES = {task_class.value: task_class for task_class in TaskClass}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What tasks and checks take when they say nothing.

    Attributes:
        task_class: None when the set names a wrong one.
    """

    tolerance: Decimal = Decimal("0.15")
    task_class: TaskClass | None = TaskClass.READ


def class_named(value: JsonValue) -> TaskClass | None:
    """Return the class that a value names; None for any other value or type."""
    return _CLASSES.get(value) if isinstance(value, str) else None


class TaskReader:
    """Reads the tasks of one set in order; remembers their ids."""

    def __init__(self, files: SetFiles, defaults: Defaults) -> None:
        self._files = files
        self._defaults = defaults
        self._ids: set[str] = set()

    def read(self, entry: JsonValue, index: int, document: Place) -> Task | None:
        """Judge one entry of `tasks`; None when it has any error.

        Source: eval-json format, section 5.
        """
        where = f"tasks[{index}]"
        mark = document.mark()
        if not isinstance(entry, dict):
            found = f"each task must be an object (found {type_name(entry)})"
            document.error(where, f"task #{index + 1}: {found}")
            return None
        task_id = self._task_id(entry, document.inside(where))
        label = f"task {task_id}: " if task_id else f"task #{index + 1}: "
        place = Place(document.problems, document.suggestions, where, label)
        place.unknown_keys(entry, _KEYS)
        task = self._task(entry, task_id, place)
        return task if place.is_sound_since(mark) else None

    def _task_id(self, entry: JsonObject, place: Place) -> TaskId | None:
        """Return the id if it is usable; it is remembered in any case."""
        given = entry.get("id", "")
        if isinstance(given, JsonNumber) and is_integer(given):
            text = given.text
            place.warning(".id", f"task id {text} is a number: its text is used")
        elif isinstance(given, str):
            text = given.strip()
        else:
            found = type_name(given)
            place.plain_error(".id", f"task id must be a string (found {found})")
            return None
        if not text:
            place.plain_error(".id", "every task needs an id")
            return None
        usable = True
        if len(text) > MAX_ID_CHARACTERS:
            place.plain_error(".id", f"task id is longer than {MAX_ID_CHARACTERS} characters")
            usable = False
        if has_control_character(text):
            place.plain_error(".id", "task id contains a control character")
            usable = False
        if text in self._ids:
            place.plain_error(".id", f"duplicate task id: {text}")
        self._ids.add(text)
        return TaskId(text) if usable else None

    def _task(self, entry: JsonObject, task_id: TaskId | None, place: Place) -> Task | None:
        task_class = self._class(entry, place)
        kind = _prose(entry, "kind", place) or "query"
        title = _prose(entry, "title", place)
        why = _prose(entry, "why", place)
        prompt = self._prompt(entry, task_id, place)
        doc = self._doc(entry, task_id, place)
        grading = read_grading(entry, self._defaults.tolerance, task_class, place)
        covers = read_tables(entry, "covers", place)
        builds = read_tables(entry, "builds", place)
        if not builds and builds is not None:
            builds = grading.builds
        capture = read_capture(entry, task_class, builds, place)
        setup = self._script(entry, "setup", task_class, place)
        teardown = self._script(entry, "teardown", task_class, place)
        if task_id is None or task_class is None or covers is None or builds is None:
            return None
        return Task(
            id=task_id,
            title=title or task_id,
            kind=kind,
            task_class=task_class,
            prompt=prompt,
            criteria=grading.criteria,
            doc=doc,
            why=why,
            covers=covers,
            builds=builds,
            setup=setup,
            teardown=teardown,
            capture=capture,
            gt=grading.gold,
        )

    def _class(self, entry: JsonObject, place: Place) -> TaskClass | None:
        if "class" not in entry:
            return self._defaults.task_class
        task_class = class_named(entry["class"])
        if task_class is None:
            place.error(".class", "class must be one of read, write")
        return task_class

    def _prompt(self, entry: JsonObject, task_id: TaskId | None, place: Place) -> str:
        text = _string(entry, "prompt_text", place)
        path = _string(entry, "prompt", place)
        if text is None or path is None:
            return ""
        if text and not text.isspace():
            return text
        if "prompt" in entry:
            return self._prompt_file(path, place)
        return self._prompt_file(f"prompts/{task_id}.txt", place) if task_id else ""

    def _prompt_file(self, path: str, place: Place) -> str:
        is_path = is_relative(path) and not escapes(path)
        if is_path and segments(path) == [MANIFEST_FILE]:
            place.error(".prompt", f"prompt may not be the manifest: {path}")
            return ""
        text = self._files.read_text(path)
        if isinstance(text, FileFault):
            place.file_fault(".prompt", text, subject="prompt", missing="prompt file missing")
            return ""
        if not text or text.isspace():
            place.error(".prompt", f"prompt is empty: {path}")
        return text

    def _doc(self, entry: JsonObject, task_id: TaskId | None, place: Place) -> str:
        path = _string(entry, "doc", place)
        is_named = "doc" in entry
        if path is None or not (is_named or task_id):
            return ""
        text = self._files.read_text(path if is_named else f"docs/{task_id}.md")
        if not isinstance(text, FileFault):
            return text
        missing = fault_message(text, subject="doc", missing="doc file missing")
        if text.kind is FaultKind.DENIED or (is_named and text.kind is FaultKind.MISSING):
            place.warning(".doc", missing)
        elif is_named or text.kind not in _ABSENT_DEFAULT_DOC:
            place.file_fault(".doc", text, subject="doc", missing="doc file missing")
        return ""

    def _script(
        self, entry: JsonObject, key: str, task_class: TaskClass | None, place: Place
    ) -> str | None:
        path = _string(entry, key, place)
        if not path or task_class is None:
            return None
        if task_class is TaskClass.READ:
            place.error(f".{key}", "setup/teardown scripts are only valid on write tasks")
            return None
        fault = self._files.find(path)
        if fault is not None:
            subject = f"{key} script"
            place.file_fault(f".{key}", fault, subject=subject, missing=f"{subject} not found")
            return None
        return path


def _string(entry: JsonObject, key: str, place: Place) -> str | None:
    """Return a string, empty when absent; None after the error about another type."""
    value = entry.get(key, "")
    if isinstance(value, str):
        return value
    place.error(f".{key}", f"{key} must be a string (found {type_name(value)})")
    return None


def _prose(entry: JsonObject, key: str, place: Place) -> str:
    """Return a text for people; blank counts as absent."""
    text = _string(entry, key, place)
    return "" if text is None or text.isspace() else text
