"""Numeric checks: is a number in the answer within the tolerance of each gold? Pure and exact.

Source: spec/numbers.md, section 9.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation, Overflow
from typing import TYPE_CHECKING, Any, Final

from proctor_grader.model.criterion import NumberCriterion
from proctor_grader.model.result import Verdict
from proctor_grader.numerals import Numeral, Skipped, extract_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_NAME: Final = "answer"
DEFAULT_TOLERANCE: Final = Decimal("0.15")
ZERO_MARGIN: Final = Decimal("0.000000001")
"""How far from 0 a number may be to pass a check for 0."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, Overflow])
"""Keeps every digit of a sum or product, whatever the ambient context says."""

_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_EXPONENTS = range(-308, 308)
"""Decimal exponents of a manifest's numbers; they also bound the digits of a difference."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check went.

    Attributes:
        value: the gold.
        closest: the number read that is nearest to it, the first of equals; None if none was read.
    """

    name: str
    value: Decimal
    tolerance: Decimal
    passed: bool
    closest: Numeral | None


@dataclass(frozen=True, slots=True)
class ChecksResult:
    """How an answer did against its checks.

    Attributes:
        results: one per check, in their order.
        numbers: all that were read of the answer, in its order.
        skipped: digits of the answer that are no numbers, for display.
        truncated: not all of the answer was read.
    """

    verdict: Verdict
    results: tuple[CheckResult, ...]
    numbers: tuple[Numeral, ...]
    skipped: tuple[Skipped, ...]
    truncated: bool


def grade_checks(
    answer: str, checks: Sequence[NumberCriterion | Mapping[str, Any]]
) -> ChecksResult:
    """Compare the numbers of an answer with what the checks ask for.

    Args:
        answer: the final answer as stored.
        checks: criteria, or mappings as in the manifest: `value`, and if it is not the default
            `name` ("answer") and `tolerance` (0.15). Numbers are a Decimal, an int, or a text
            that is a plain decimal.

    Raises:
        ValueError: a check is none; the text names the check and the key.
    """
    criteria = [_criterion(place, check) for place, check in enumerate(checks)]
    read = extract_numbers(answer)
    line = _NumberLine(read.numbers)
    results = tuple(
        CheckResult(
            name=criterion.name,
            value=criterion.value,
            tolerance=criterion.tolerance,
            passed=line.has_any(*_accepted(criterion)),
            closest=line.closest(criterion.value),
        )
        for criterion in criteria
    )
    return ChecksResult(
        verdict=_verdict(results, has_numbers=bool(read.numbers)),
        results=results,
        numbers=read.numbers,
        skipped=read.skipped,
        truncated=read.truncated,
    )


def _verdict(results: Sequence[CheckResult], *, has_numbers: bool) -> Verdict:
    if not results:
        return Verdict.UNGRADED
    if not has_numbers:
        return Verdict.UNKNOWN
    passed = sum(result.passed for result in results)
    if passed == len(results):
        return Verdict.CORRECT
    return Verdict.PARTIAL if passed else Verdict.OFF


def _accepted(criterion: NumberCriterion) -> tuple[Decimal, Decimal]:
    """Return the least and the greatest number that passes."""
    if not criterion.value:
        return ZERO_MARGIN.copy_negate(), ZERO_MARGIN
    margin = _EXACT.multiply(criterion.tolerance, criterion.value.copy_abs())
    return _EXACT.subtract(criterion.value, margin), _EXACT.add(criterion.value, margin)


class _NumberLine:
    """The numbers of an answer in the order of their values; equal ones in the text's order."""

    def __init__(self, numbers: Sequence[Numeral]) -> None:
        self._numbers = sorted(numbers, key=lambda number: number.value)
        self._values = [number.value for number in self._numbers]

    def has_any(self, least: Decimal, greatest: Decimal) -> bool:
        """Whether a number lies between two values, both included."""
        place = bisect_left(self._values, least)
        return place < len(self._values) and self._values[place] <= greatest

    def closest(self, value: Decimal) -> Numeral | None:
        """Return the number nearest to a value, the first in the text of equally near ones."""
        above = bisect_left(self._values, value)
        places = [above] if above < len(self._values) else []
        if above > 0:  # the first in the text of those that equal the next lower value
            places.append(bisect_left(self._values, self._values[above - 1]))
        return min(
            (self._numbers[place] for place in places),
            key=lambda number: (_distance(number.value, value), number.start),
            default=None,
        )


def _distance(number: Decimal, value: Decimal) -> Decimal:
    return _EXACT.subtract(number, value).copy_abs()


def _criterion(place: int, check: NumberCriterion | Mapping[str, Any]) -> NumberCriterion:
    where = f"checks[{place}]"
    if isinstance(check, NumberCriterion):
        given: Mapping[str, Any] = check.to_json()
    elif isinstance(check, Mapping):
        given = check
    else:
        raise ValueError(f"{where}: not a check (expected a mapping, found {_shown(check)})")
    name = given.get("name", DEFAULT_NAME)
    if not isinstance(name, str):
        raise ValueError(f"{where}.name: not a name (expected a string, found {_shown(name)})")
    name = name if name.strip() else DEFAULT_NAME
    value = _number(f"{where}.value", name, given.get("value"))
    tolerance = _number(f"{where}.tolerance", name, given.get("tolerance", DEFAULT_TOLERANCE))
    if tolerance < 0:
        raise ValueError(
            f"{where}.tolerance: check '{name}' has a negative tolerance"
            f" (expected at least 0, found {_shown(tolerance)})"
        )
    return NumberCriterion(name, value, tolerance)


def _number(where: str, name: str, given: object) -> Decimal:
    """Read a check's number exactly, of any type that can hold one."""
    number: Decimal | None = None
    if isinstance(given, Decimal):
        number = given
    elif isinstance(given, int) and not isinstance(given, bool):
        number = Decimal(given)
    elif isinstance(given, float):
        number = Decimal(repr(given))  # the literal that names it, not its binary digits
    elif isinstance(given, str) and _PLAIN_NUMBER.fullmatch(given.strip()):
        number = Decimal(given.strip())
    if number is None or not number.is_finite():
        raise ValueError(
            f"{where}: check '{name}' has no number"
            f" (expected a finite number, found {_shown(given)})"
        )
    if number and number.adjusted() not in _EXPONENTS:
        raise ValueError(
            f"{where}: check '{name}' has a number out of range"
            f" (expected 0 or a magnitude from 1e-308 up to 1e308, found {_shown(number)})"
        )
    return number


def _shown(given: object) -> str:
    text = f"'{given}'" if isinstance(given, (str, int, float, Decimal)) else type(given).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
