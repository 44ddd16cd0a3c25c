"""The eval-json format's lists of tables: what a task covers, builds and has captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.formats.exact import integer
from proctor_grader.formats.strict_json import type_name
from proctor_grader.identifiers import is_table_name
from proctor_grader.model.task import DEFAULT_SAMPLE_ROWS, Capture, CaptureMode, TaskClass

if TYPE_CHECKING:
    from proctor_grader.formats.place import Place
    from proctor_grader.formats.strict_json import JsonObject, JsonValue

_CAPTURE_KEYS = ("tables", "mode", "sample_rows")
_MODES = {mode.value: mode for mode in CaptureMode}


def read_strings(
    value: JsonValue, name: str, suffix: str, place: Place
) -> list[tuple[int, str]] | None:
    """Return a list's strings with their indices, without entries of another type.

    Every one of those is reported; None after the error about a value that is no list.
    """
    wrong = f"{name} must be a list of strings"
    if not isinstance(value, list):
        place.error(suffix, f"{wrong} (found {type_name(value)})")
        return None
    strings = []
    for index, entry in enumerate(value):
        if isinstance(entry, str):
            strings.append((index, entry))
        else:
            place.error(f"{suffix}[{index}]", f"{wrong} (found {type_name(entry)})")
    return strings


def read_table(text: str, suffix: str, place: Place) -> str | None:
    """Return a trimmed table name; None after the error about one that isn't plain (R4)."""
    table = text.strip()
    if is_table_name(table):
        return table
    place.error(suffix, f"invalid table identifier: {table}")
    return None


def read_tables(
    entry: JsonObject, key: str, place: Place, owner: str = ""
) -> tuple[str, ...] | None:
    """Return a list of table names, empty when absent; None when it has a fault.

    Args:
        entry: the object that may hold the list.
        key: of the list.
        place: of the object.
        owner: what stands before the key in messages.

    Source: eval-json format, L1, L2, A3 and R4.
    """
    value = entry.get(key)
    if value is None and key not in entry:
        return ()
    strings = read_strings(value, f"{owner}{key}", f".{key}", place)
    if strings is None:
        return None
    tables = [read_table(text, f".{key}[{index}]", place) for index, text in strings]
    sound = [table for table in tables if table is not None]
    is_whole = isinstance(value, list) and len(sound) == len(value)
    return tuple(sound) if is_whole else None


def read_capture(
    entry: JsonObject,
    task_class: TaskClass | None,
    builds: tuple[str, ...] | None,
    place: Place,
) -> Capture | None:
    """Return what to capture, with defaults filled in; None for nothing.

    Args:
        entry: the task.
        task_class: None when it is wrong, which switches off what depends on it.
        builds: None when they are faulty, so that nothing can be said of a default.
        place: of the task.

    Source: eval-json format, A1 to A6.
    """
    given = entry.get("capture")
    if given is None and "capture" not in entry:
        automatic = builds if task_class is TaskClass.WRITE else None
        return Capture(_without_repeats(automatic)) if automatic else None
    if not isinstance(given, dict):
        place.error(".capture", f"capture must be an object (found {type_name(given)})")
        return None
    if task_class is TaskClass.READ:
        place.error(".capture", "capture is only valid on write tasks")
    if task_class is not TaskClass.WRITE:
        return None
    inner = place.inside(".capture")
    inner.unknown_keys(given, _CAPTURE_KEYS)
    tables = read_tables(given, "tables", inner, "capture.")
    if tables == ():
        tables = builds
        if builds == ():
            inner.error(".tables", "capture needs tables (or builds to default from)")
    mode = _mode(given, inner)
    sample_rows = _sample_rows(given, inner)
    return Capture(_without_repeats(tables or ()), mode, sample_rows)


def _mode(given: JsonObject, place: Place) -> CaptureMode:
    mode = given.get("mode", CaptureMode.FINGERPRINT.value)
    if not isinstance(mode, str):
        place.error(".mode", f"capture mode must be a string (found {type_name(mode)})")
    elif mode not in _MODES:
        known = ", ".join(_MODES)
        place.error(".mode", f"unknown capture mode '{mode}' (one of {known})")
    else:
        return _MODES[mode]
    return CaptureMode.FINGERPRINT


def _sample_rows(given: JsonObject, place: Place) -> int:
    if "sample_rows" not in given:
        return DEFAULT_SAMPLE_ROWS
    rows = integer(given["sample_rows"])
    if rows is not None and rows > 0:
        return rows
    place.error(".sample_rows", "sample_rows must be a positive integer")
    return DEFAULT_SAMPLE_ROWS


def _without_repeats(tables: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tables))
