"""Pure: counts a run's verdicts and judges them by its gates, in exact decimals.

Source: design.md, section 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from proctor_grader.errors import UserError
from proctor_grader.model.result import Cause, Outcome, outcome_of
from proctor_grader.model.run import Accuracy, GateResult, Totals
from proctor_grader.problems import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader.model.result import UnitResult, Verdict

MIN_ACCURACY = "minAccuracy"
MAX_ERRORS = "maxErrors"
MAX_UNGRADED = "maxUngraded"
ALL_PASSED = "allPassed"
_ASKED = (MIN_ACCURACY, MAX_ERRORS, MAX_UNGRADED)
_HUNDRED = Decimal(100)


def add(totals: Totals, verdict: Verdict, cause: Cause | None) -> Totals:
    """Return the totals with one more finished unit."""
    outcome = outcome_of(verdict, cause)
    more: dict[str, int] = {outcome.value: getattr(totals, outcome.value) + 1}
    if outcome is Outcome.UNGRADED and cause is Cause.SET:
        more["ungraded_set"] = totals.ungraded_set + 1
    if outcome is Outcome.UNGRADED and cause is Cause.GRADER:
        more["ungraded_grader"] = totals.ungraded_grader + 1
    if cause is Cause.INFRA:
        more["infra"] = totals.infra + 1
    return replace(totals, total=totals.total + 1, **more)


@dataclass(slots=True)
class TallyBuilder:
    """Counts verdicts as they come; its memory does not grow with the number of units."""

    _counts: Counter[tuple[str, Verdict, Cause | None]] = field(default_factory=Counter)

    def add(self, variant: str, verdict: Verdict, cause: Cause | None) -> None:
        """Count one finished unit."""
        self._counts[variant, verdict, cause] += 1

    def totals(self) -> dict[str, Totals]:
        """Return what was counted so far by variant, in the order variants first appeared."""
        every: dict[str, Totals] = {}
        for (variant, verdict, cause), count in self._counts.items():
            one = add(Totals(), verdict, cause)
            every[variant] = _sum(every.get(variant, Totals()), one, count)
        return every


def _sum(totals: Totals, one: Totals, count: int) -> Totals:
    names = Totals.__dataclass_fields__
    return Totals(**{name: getattr(totals, name) + count * getattr(one, name) for name in names})


def count(results: Iterable[UnitResult]) -> dict[str, Totals]:
    """Return the totals by variant, in the order variants first appear; reads results once."""
    tally = TallyBuilder()
    for result in results:
        tally.add(result.variant, result.verdict, result.cause)
    return tally.totals()


def gradable(totals: Totals) -> int:
    """Units that have something to grade: all but those ungraded with cause `set`."""
    return totals.total - totals.ungraded_set


def accuracy_of(totals: Totals) -> Accuracy:
    """Return the share of passed units in percent, None where there is nothing to divide by."""
    of_all = gradable(totals)
    return Accuracy(
        value=_percent(totals.passed, of_all),
        measured=_percent(totals.passed, of_all - totals.infra),
    )


def _percent(part: int, whole: int) -> Decimal | None:
    if whole <= 0:
        return None
    hundredths = (2 * 100 * 100 * part + whole) // (2 * whole)  # half up, in integers
    return Decimal(hundredths).scaleb(-2)


@dataclass(frozen=True, slots=True)
class GateSpec:
    """What a finished run must fulfil, each variant for itself.

    Attributes:
        min_accuracy: percent; without one every unit that has something to grade must pass.
        max_errors: units with outcome `error`.
        max_ungraded: units ungraded with cause `grader`.
    """

    min_accuracy: Decimal | None = None
    max_errors: int = 0
    max_ungraded: int = 0


def parse_gate(text: str, onto: GateSpec | None = None) -> GateSpec:
    """Return `onto` (by default a fresh spec) with the one gate that `NAME=VALUE` asks for.

    Raises:
        UserError: unknown name, or a value that the gate can't have.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    where = f"--gate {text}"
    if name not in _ASKED:
        raise UserError(
            f"unknown gate '{name}'{suggestion(name, _ASKED)} "
            f"(expected one of {', '.join(_ASKED)})",
            where=where,
        )
    if not equals:
        raise UserError(f"gate has no value (expected {name}=VALUE)", where=where)
    spec = onto or GateSpec()
    if name == MIN_ACCURACY:
        return replace(spec, min_accuracy=_parse_percent(value, where))
    limit = _parse_limit(value, name, where)
    if name == MAX_ERRORS:
        return replace(spec, max_errors=limit)
    return replace(spec, max_ungraded=limit)


def parse_gates(texts: Iterable[str]) -> GateSpec:
    """Return the spec that several `NAME=VALUE` texts ask for together.

    Raises:
        UserError: one of them is wrong, or a gate is given twice.
    """
    spec = GateSpec()
    seen: set[str] = set()
    for text in texts:
        spec = parse_gate(text, spec)
        name = text.partition("=")[0].strip()
        if name in seen:
            raise UserError(f"gate '{name}' is given twice", where=f"--gate {text}")
        seen.add(name)
    return spec


def _parse_percent(value: str, where: str) -> Decimal:
    try:
        percent = Decimal(value) if value.isascii() and "_" not in value else None
    except InvalidOperation:
        percent = None
    if percent is None or not percent.is_finite() or not 0 <= percent <= _HUNDRED:
        raise UserError(
            f"minAccuracy is a percentage (expected 0 to 100, found '{value}')", where=where
        )
    return percent


def _parse_limit(value: str, name: str, where: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise UserError(
            f"{name} is a number of units (expected 0 or more, found '{value}')", where=where
        )
    return int(value)


def evaluate_gates(spec: GateSpec, totals: Mapping[str, Totals]) -> tuple[GateResult, ...]:
    """Judge every gate; each must hold for every variant, so `got` tells of the worst one.

    Args:
        spec: what is asked.
        totals: of a finished run, by variant.
    """
    variants = list(totals.values())
    accuracy = (
        _judge_all_passed(variants)
        if spec.min_accuracy is None
        else _judge_accuracy(spec.min_accuracy, variants)
    )
    return (
        accuracy,
        _judge_limit(MAX_ERRORS, spec.max_errors, [each.error for each in variants]),
        _judge_limit(MAX_UNGRADED, spec.max_ungraded, [each.ungraded_grader for each in variants]),
    )


def _judge_accuracy(least: Decimal, variants: list[Totals]) -> GateResult:
    found = [accuracy_of(each).value for each in variants]
    known = [value for value in found if value is not None]
    missing = not found or len(known) < len(found)
    return GateResult(
        name=MIN_ACCURACY,
        want=f">= {_plain(least)}",
        got="n/a" if missing else str(min(known)),
        passed=not missing and min(known) >= least,
    )


def _judge_all_passed(variants: list[Totals]) -> GateResult:
    worst = max(variants, key=lambda each: gradable(each) - each.passed, default=Totals())
    of_all = gradable(worst)
    return GateResult(
        name=ALL_PASSED,
        want="every unit to grade",
        got=f"{worst.passed} of {of_all}",
        passed=worst.passed == of_all,
    )


def _judge_limit(name: str, limit: int, found: list[int]) -> GateResult:
    most = max(found, default=0)
    return GateResult(name=name, want=f"<= {limit}", got=str(most), passed=most <= limit)


def _plain(value: Decimal) -> str:
    text = format(value.normalize(), "f")
    return "0" if value == 0 else text


def passed(gates: Iterable[GateResult]) -> bool:
    """Whether every gate holds."""
    return all(gate.passed for gate in gates)
