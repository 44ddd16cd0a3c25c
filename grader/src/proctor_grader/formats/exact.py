"""JSON values -> exact numbers, within bounds that keep later arithmetic finite. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from proctor_grader.formats.strict_json import JsonNumber

if TYPE_CHECKING:
    from proctor_grader.formats.strict_json import JsonValue

MAX_INTEGER_DIGITS = 640
"""Every Python turns so many digits into an int, whatever its limit is set to."""

_PLAIN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_INTEGER = re.compile(r"-?[0-9]+")
_LARGEST_EXPONENT = 307
_SMALLEST_EXPONENT = -308
_MAX_EXPONENT_DIGITS = 9
_MAX_ZERO_EXPONENT = 400


def plain_decimal(text: str) -> Decimal | None:
    """Return the number that `[+-]?digits[.digits]` stands for; None for any other text.

    Source: eval-json format, section 2; the number is within its bounds.
    """
    return _bounded(Decimal(text)) if _PLAIN.fullmatch(text) else None


def finite_number(value: JsonValue) -> Decimal | None:
    """Return the exact number of a JSON number or of a plain decimal in a string.

    Returns:
        0, or a magnitude from 1e-308 up to but not including 1e308; None for everything else.

    Source: eval-json format, section 2.
    """
    if isinstance(value, str):
        return plain_decimal(value.strip())
    if not isinstance(value, JsonNumber):
        return None
    mantissa, _, exponent = value.text.lower().partition("e")
    if len(exponent.lstrip("+-").lstrip("0")) > _MAX_EXPONENT_DIGITS:
        return None if Decimal(mantissa) else Decimal(0)
    return _bounded(Decimal(value.text))


def tolerance(value: JsonValue) -> Decimal | None:
    """Return a finite number of at least 0; None for everything else."""
    number = finite_number(value)
    return None if number is None or number < 0 else number


def integer(value: JsonValue) -> int | None:
    """Return the integer of a JSON number without fraction and exponent; None for others.

    Source: eval-json format, section 2.
    """
    if not isinstance(value, JsonNumber) or len(value.text) > MAX_INTEGER_DIGITS:
        return None
    return int(value.text) if is_integer(value) else None


def is_integer(number: JsonNumber) -> bool:
    """Whether the number is written without fraction and exponent."""
    return _INTEGER.fullmatch(number.text) is not None


def _bounded(number: Decimal) -> Decimal | None:
    if not number:
        return number if -_MAX_ZERO_EXPONENT <= number.adjusted() <= 0 else Decimal(0)
    return number if _SMALLEST_EXPONENT <= number.adjusted() <= _LARGEST_EXPONENT else None
