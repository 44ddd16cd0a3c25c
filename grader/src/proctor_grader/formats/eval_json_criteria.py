"""The eval-json format's grading: gold, checks and the grade block -> criteria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader.formats.eval_json_table import read_strings, read_table
from proctor_grader.formats.exact import finite_number, integer, plain_decimal, tolerance
from proctor_grader.formats.strict_json import JsonNumber, type_name
from proctor_grader.identifiers import is_plain_name
from proctor_grader.model.criterion import ModelExpectation, ModelRebuiltCriterion, NumberCriterion
from proctor_grader.model.task import TaskClass

if TYPE_CHECKING:
    from decimal import Decimal

    from proctor_grader.formats.place import Place
    from proctor_grader.formats.strict_json import JsonObject, JsonValue
    from proctor_grader.model.criterion import Criterion

_CHECK_KEYS = ("name", "value", "tolerance")
_GRADE_KEYS = ("kind", "model", "expect")
_EXPECT_KEYS = ("row_count", "row_count_tolerance", "grain", "columns")
_CHECKS = "checks"
_MODEL_REBUILT = ModelRebuiltCriterion.type
_DEFAULT_CHECK_NAME = "answer"
_GOLD_DECORATION = str.maketrans("", "", ",$")


@dataclass(frozen=True, slots=True)
class Grading:
    """How a task is judged.

    Attributes:
        gold: for display.
        builds: what the task builds when it doesn't say so; None when a fault hides it.
    """

    gold: str
    criteria: tuple[Criterion, ...]
    builds: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class _Grade:
    """The grade block: its kind, None when faulty, and the model asked for."""

    kind: str | None
    rebuilt: ModelRebuiltCriterion | None = None


def read_grading(
    entry: JsonObject, default_tolerance: Decimal, task_class: TaskClass | None, place: Place
) -> Grading:
    """Judge `gt`, `checks` and `grade` of a task.

    Source: eval-json format, G1 to G5, C1 to C7 and R1 to R9.
    """
    mark = place.mark()
    gold = _gold(entry, place)
    checks = _checks(entry, default_tolerance, place)
    grade = _grade(entry, task_class, place)
    if grade.kind == _MODEL_REBUILT:
        if entry.get("checks") and isinstance(entry["checks"], list):
            place.warning(".checks", f"checks have no effect with grade kind {_MODEL_REBUILT}")
        if grade.rebuilt is None:
            return Grading(gold, (), None)
        return Grading(gold, (grade.rebuilt,), (grade.rebuilt.model,))
    if not entry.get("checks"):
        checks = _gold_check(gold, default_tolerance)
    if not checks and place.is_sound_since(mark):
        _warn_ungraded(gold, place)
    return Grading(gold, checks, None if grade.kind is None else ())


def _gold(entry: JsonObject, place: Place) -> str:
    """Return the gold's text; a number stands for its source text (G3)."""
    given = entry.get("gt", "")
    if isinstance(given, str):
        return given
    if isinstance(given, JsonNumber):
        return given.text
    place.error(".gt", f"gt must be a string or a number (found {type_name(given)})")
    return ""


def _gold_check(gold: str, default_tolerance: Decimal) -> tuple[NumberCriterion, ...]:
    """Return the one check that a gold makes if it is a plain number (G1, G2)."""
    value = plain_decimal("".join(gold.translate(_GOLD_DECORATION).split()))
    if value is None:
        return ()
    return (NumberCriterion(_DEFAULT_CHECK_NAME, value, default_tolerance),)


def _warn_ungraded(gold: str, place: Place) -> None:
    if gold and not gold.isspace():
        place.warning(".gt", "gt is no plain number, so the task is UNGRADED: give it checks")
    else:
        place.warning("", "nothing to grade, so the task is UNGRADED: give it a gt or checks")


def _checks(
    entry: JsonObject, default_tolerance: Decimal, place: Place
) -> tuple[NumberCriterion, ...]:
    given = entry.get("checks", [])
    if not isinstance(given, list):
        place.error(".checks", f"checks must be a list (found {type_name(given)})")
        return ()
    checks = (
        _check(check, default_tolerance, place.inside(f".checks[{index}]"))
        for index, check in enumerate(given)
    )
    return tuple(check for check in checks if check is not None)


def _check(given: JsonValue, default_tolerance: Decimal, place: Place) -> NumberCriterion | None:
    if not isinstance(given, dict):
        place.error("", "each check needs at least a value")
        return None
    place.unknown_keys(given, _CHECK_KEYS)
    value = None
    if "value" not in given:
        place.error("", "each check needs at least a value")
    else:
        value = finite_number(given["value"])
        if value is None:
            place.error(".value", "non-numeric check: value must be a finite number")
    share: Decimal | None = default_tolerance
    if "tolerance" in given:
        share = tolerance(given["tolerance"])
        if share is None:
            place.error(".tolerance", "check tolerance must be a finite number of at least 0")
    name = given.get("name", "")
    if not isinstance(name, str):
        place.error(".name", f"check name must be a string (found {type_name(name)})")
        return None
    if value is None or share is None:
        return None
    return NumberCriterion(name if name.strip() else _DEFAULT_CHECK_NAME, value, share)


def _grade(entry: JsonObject, task_class: TaskClass | None, place: Place) -> _Grade:
    given = entry.get("grade", {})
    if not isinstance(given, dict):
        place.error(".grade", f"grade must be an object (found {type_name(given)})")
        return _Grade(None)
    inner = place.inside(".grade")
    inner.unknown_keys(given, _GRADE_KEYS)
    kind = given.get("kind", _CHECKS)
    if not isinstance(kind, str):
        inner.error(".kind", f"grade kind must be a string (found {type_name(kind)})")
        return _Grade(None)
    if kind == _CHECKS:
        for key in ("model", "expect"):
            if key in given:
                inner.warning(f".{key}", f"{key} has no effect with grade kind {_CHECKS}")
        return _Grade(_CHECKS)
    if kind != _MODEL_REBUILT:
        known = f"{_CHECKS}, {_MODEL_REBUILT}"
        inner.error(".kind", f"unknown grade kind '{kind}' (one of {known})")
        return _Grade(None)
    if task_class is TaskClass.READ:
        inner.error(".kind", f"{_MODEL_REBUILT} grading requires class: write")
    model = _model(given, inner)
    expectation = _expectation(given, inner)
    return _Grade(kind, None if model is None else ModelRebuiltCriterion(model, expectation))


def _model(given: JsonObject, place: Place) -> str | None:
    model = given.get("model", "")
    if not isinstance(model, str):
        place.error(".model", f"grade model must be a string (found {type_name(model)})")
        return None
    if not model.strip():
        place.error(".model", f"grade.{_MODEL_REBUILT} needs a model")
        return None
    return read_table(model, ".model", place)


def _expectation(grade: JsonObject, place: Place) -> ModelExpectation:
    given = grade.get("expect", {})
    if not isinstance(given, dict):
        place.error(".expect", f"grade.expect must be an object (found {type_name(given)})")
        return ModelExpectation()
    inner = place.inside(".expect")
    inner.unknown_keys(given, _EXPECT_KEYS)
    return ModelExpectation(
        row_count=_row_count(given, inner),
        row_count_tolerance=_row_count_tolerance(given, inner),
        grain=_grain(given, inner),
        columns=_columns(given, inner),
    )


def _row_count(given: JsonObject, place: Place) -> int | None:
    if "row_count" not in given:
        return None
    count = integer(given["row_count"])
    if count is None or count < 0:
        place.error(".row_count", "expect.row_count must be a non-negative integer")
        return None
    return count


def _row_count_tolerance(given: JsonObject, place: Place) -> Decimal | None:
    if "row_count_tolerance" not in given:
        return None
    share = tolerance(given["row_count_tolerance"])
    if share is None:
        place.error(
            ".row_count_tolerance",
            "expect.row_count_tolerance must be a finite number of at least 0",
        )
    return share


def _grain(given: JsonObject, place: Place) -> tuple[str, ...] | None:
    if "grain" not in given:
        return None
    names = read_strings(given["grain"], "expect.grain", ".grain", place) or []
    for index, name in names:
        if not is_plain_name(name):
            place.error(f".grain[{index}]", f"invalid column identifier: {name}")
    return tuple(name for _, name in names)


def _columns(given: JsonObject, place: Place) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    names = read_strings(given["columns"], "expect.columns", ".columns", place) or []
    for index, name in names:
        if not name.strip():
            place.error(f".columns[{index}]", "expect.columns may not contain an empty name")
    return tuple(name for _, name in names)
