"""What stands before a number: its sign and its currency.

Source: spec/numbers.md, section 1 (currency, money) and section 5 (sign).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor_grader.numerals.names import code_start
from proctor_grader.numerals.shape import (
    DASHES,
    DIGITS,
    LETTERS,
    WHITESPACES,
    WORD_CHARACTERS,
    is_joined_by_underscore,
)

_BEFORE_MINUS: Final = frozenset("([{<>=:;,|\"'“‘«*`~≈≤≥≠→")
_QUOTES: Final = frozenset("\"'“‘«")
_CURRENCY_GAPS: Final = frozenset(" \u00a0")
_CAPITALS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Prefix(NamedTuple):
    """What belongs to a number on its left.

    Attributes:
        start: place of the first character that belongs to the number.
    """

    start: int
    is_negative: bool = False
    has_currency: bool = False


def read_prefix(shape: str, start: int, floor: int) -> Prefix:
    """Read sign and currency before a number.

    Args:
        shape: of the whole text.
        start: place of the number's first digit or leading dot.
        floor: end of what was read before; nothing is read twice.
    """
    sign = start - 1
    before = shape[sign] if sign >= floor else ""
    if before in DASHES:
        currency = _currency_start(shape, sign, floor)
        if currency is not None and not _is_glued(shape, currency):
            return Prefix(currency, is_negative=True, has_currency=True)
        if _may_be_minus(shape, sign):
            return Prefix(sign, is_negative=True)
        return Prefix(start)
    is_plus = before == "+"
    currency = _currency_start(shape, sign if is_plus else start, floor)
    if currency is None or (is_plus and _is_glued(shape, currency)):
        return Prefix(start)
    outer = currency - 1
    if outer >= floor and shape[outer] in DASHES and _may_be_minus(shape, outer):
        return Prefix(outer, is_negative=True, has_currency=True)
    return Prefix(currency, has_currency=True)


def _currency_start(shape: str, end: int, floor: int) -> int | None:
    """Return where the currency begins that ends at a place, at most one space before it."""
    start = _token_start(shape, end, floor)
    if start is not None or end <= floor or shape[end - 1] not in _CURRENCY_GAPS:
        return start
    start = _token_start(shape, end - 1, floor)
    # In `10€ 20` the sign belongs to the number that it is glued to.
    is_taken = start is not None and start > 0 and shape[start - 1] in DIGITS
    return None if is_taken else start


def _token_start(shape: str, end: int, floor: int) -> int | None:
    last = end - 1
    if last < floor:
        return None
    if shape[last] != "$":
        start = code_start(shape, end) if shape[last] in LETTERS else None
        return start if start is not None and start >= floor else None
    start = last - 1 if last > floor and shape[last - 1] == "\\" else last
    capitals = start
    while capitals > floor and start - capitals < 3 and shape[capitals - 1] in _CAPITALS:
        capitals -= 1
    is_word = capitals > 0 and shape[capitals - 1] in WORD_CHARACTERS
    return start if is_word else capitals


def _is_glued(shape: str, currency: int) -> bool:
    before = shape[currency - 1] if currency else ""
    return before in DIGITS or before in LETTERS


def _may_be_minus(shape: str, dash: int) -> bool:
    if dash == 0:
        return True
    before = shape[dash - 1]
    if before == "_":
        return not is_joined_by_underscore(shape, dash)
    if before in _QUOTES and dash > 1 and shape[dash - 2] in DIGITS:
        return False
    return before in WHITESPACES or before in _BEFORE_MINUS
