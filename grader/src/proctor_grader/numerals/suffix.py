"""What stands after a digit run: exponent, magnitude or unit, and what marks a decimal comma.

Source: spec/numbers.md, sections 4 (mixed tokens, hexadecimal), 5 (exponent) and 7 (magnitude).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from proctor_grader.numerals.magnitude import has_currency_at, read_magnitude
from proctor_grader.numerals.names import mixed_end
from proctor_grader.numerals.numeral import SkipKind
from proctor_grader.numerals.shape import BOUNDARY, SPACE, WORD

MAX_EXPONENT: Final = 30

_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")
_TAIL = re.compile(rf"[{WORD}]*+")
_EXPONENT = re.compile(rf"[eE]([+\-−]?[0-9]++){BOUNDARY}(?!\.[0-9])")
_POWER = r"(?:\^([+\-−]?[0-9]++)(?!\.[0-9])|\^\{([+\-−]?[0-9]++)\}|([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]++))"
_BARE_POWER = re.compile(_POWER)
_TIMES_POWER = re.compile(rf"[{SPACE}]?(?:[×xX*·⋅]|\\times|\\cdot)[{SPACE}]?10{_POWER}")
_PERCENT = re.compile(rf"[{SPACE}]?%")
_HEX_NUMBER = re.compile(r"[xX][0-9a-fA-F]++")
_HASH_LETTERS: Final = re.compile(r"[a-f]{2,}+")
_HASH_LENGTH: Final = 7


class Suffix(NamedTuple):
    """What belongs to a number on its right.

    Attributes:
        end: place after all that belongs to it.
        exponent: power of ten that is written as one; 0 without one.
        magnitude: power of ten of a magnitude; 0 without one.
        is_bare: neither exponent nor magnitude nor unit.
        marks_comma: percent sign, currency or magnitude, at most one space away.
        skip: why the whole token is no number.
    """

    end: int
    exponent: int = 0
    magnitude: int = 0
    is_bare: bool = True
    marks_comma: bool = False
    skip: SkipKind | None = None


def read_suffix(shape: str, start: int, end: int, *, has_money: bool) -> Suffix:
    """Read what follows the digit run from `start` to `end`."""
    match = _EXPONENT.match(shape, end) or _TIMES_POWER.match(shape, end)
    is_power_alone = False
    if match is None and shape[start:end] == "10":
        match = _BARE_POWER.match(shape, end)
        is_power_alone = match is not None
    if match is None:
        return _read_word(shape, start, end, has_money=has_money)
    exponent = _bounded(next(digits for digits in match.groups() if digits))
    if exponent is None:
        return Suffix(match.end(), skip=SkipKind.EXPONENT_RANGE)
    word = _read_word(shape, match.end(), match.end(), has_money=has_money)
    # The digits of a power alone are its base: they already hold one power of ten.
    exponent -= 1 if is_power_alone else 0
    return word._replace(exponent=exponent, is_bare=False)


def _bounded(digits: str) -> int | None:
    """Read an exponent; None if it is out of range, however long it is."""
    plain = digits.translate(_SUPERSCRIPTS)
    size = plain.lstrip("+-").lstrip("0")
    if len(size) > 2 or int(size or "0") > MAX_EXPONENT:
        return None
    return -int(size or "0") if plain.startswith("-") else int(size or "0")


def _read_word(shape: str, start: int, end: int, *, has_money: bool) -> Suffix:
    tail = _TAIL.match(shape, end)
    word = tail[0].rstrip("_") if tail else ""
    if word and not word.isalpha():
        return Suffix(mixed_end(shape, end), skip=SkipKind.MIXED)
    if word and _is_hexadecimal(shape, start, end, word):
        return Suffix(end + len(word), skip=SkipKind.HEX)
    magnitude = read_magnitude(shape, end, has_money=has_money)
    if magnitude is not None:
        return Suffix(
            magnitude.end,
            magnitude=magnitude.power,
            is_bare=False,
            marks_comma=magnitude.is_near,
        )
    return Suffix(
        end + len(word),
        is_bare=not word,
        marks_comma=_PERCENT.match(shape, end) is not None or has_currency_at(shape, end),
    )


def _is_hexadecimal(shape: str, start: int, end: int, word: str) -> bool:
    if shape[start:end] == "0" and _HEX_NUMBER.fullmatch(word):
        return True
    if not _HASH_LETTERS.fullmatch(word):
        return False
    first = end - max(_HASH_LENGTH - len(word), 1)
    return first >= start and shape[first:end].isdigit()
