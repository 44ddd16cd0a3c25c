"""Magnitudes: words and letters that multiply the number before them.

Source: spec/numbers.md, section 7; rule numbers are those of its list.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from proctor_grader.numerals.shape import (
    BOUNDARY,
    CODE,
    DASH,
    HYPHEN,
    HYPHENS,
    MARK,
    SIGN,
    SPACE,
    WORD,
    WORD_CHARACTERS,
)

_SINGULAR = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SPELLED: Final = _SINGULAR | {f"{word}s": power for word, power in _SINGULAR.items()}
_SHORT: Final = {"mil": 6, "mn": 6, "mln": 6, "mio": 6, "bn": 9, "bln": 9, "mrd": 9, "tn": 12}
_LETTERS: Final = {"k": 3, "m": 6, "b": 9, "t": 12}
_MM: Final = "mm"
_POWERS: Final = _SPELLED | _SHORT | {_MM: 6}
_DOTTED: Final = frozenset(("mio", "mrd"))
_FREE_LETTERS: Final = frozenset("KMBTk")  # after a gap, the others need money
_US_STATES: Final = frozenset(("MN", "TN"))
_NEAR: Final = frozenset(("", " ", "\t", "\u00a0"))

_WORDS = "|".join(_POWERS)
# Group 1: what stands between number and word; it is empty where the word is glued.
_WORD_AFTER = re.compile(
    rf"([{MARK}]{{0,3}}[{SPACE}]{{1,3}}[{MARK}]{{0,3}}|[{HYPHEN}]|)((?i:{_WORDS})){BOUNDARY}"
)
_LETTER_GLUED = re.compile(rf"([kKmMbBtT]){BOUNDARY}(?!(?<=[mM])[²³^])")
_LETTER_AFTER = re.compile(
    rf"([{MARK}]{{0,3}}[ \u00a0][{MARK}]{{0,3}})([kKmMbBtT]){BOUNDARY}"
    rf"(?!(?<=[mM])[²³^]|[{DASH}&/]|[.'’+][{WORD}])"
)
_SECOND = re.compile(rf"[{SPACE}{HYPHEN}]((?i:millions?|billions?|trillions?)){BOUNDARY}")
_CURRENCY = re.compile(rf"[{SPACE}]?(?:{SIGN}|(?<![{WORD}]){CODE}{BOUNDARY})")
_JOINED_MONEY = re.compile(rf"[{DASH}](?:{SIGN}|(?<![{WORD}]){CODE})[ \u00a0]?[+{DASH}]?\.?[0-9]")


class Magnitude(NamedTuple):
    """A magnitude with its place.

    Attributes:
        power: of ten.
        end: place after it, the dot of `Mio.` included.
        is_near: glued to the number or one space away, so that it marks a decimal comma.
    """

    power: int
    end: int
    is_near: bool


def has_currency_at(shape: str, at: int) -> bool:
    """Whether a currency stands at a place or one space on."""
    return _CURRENCY.match(shape, at) is not None


def read_magnitude(shape: str, end: int, *, has_money: bool) -> Magnitude | None:
    """Read the magnitude of a number; None without one, also where the word is a unit.

    Args:
        shape: of the whole text.
        end: of the number's digits or exponent.
        has_money: the number is money (section 1).
    """
    if match := _WORD_AFTER.match(shape, end):
        return _read_word(shape, match, has_money=has_money)
    if match := _LETTER_GLUED.match(shape, end):
        return Magnitude(_LETTERS[match[1].lower()], match.end(), is_near=True)
    match = _LETTER_AFTER.match(shape, end)
    if match is None:
        return None
    letter = match[2]
    if letter in _FREE_LETTERS or has_money or _has_money_after(shape, match.end()):
        return Magnitude(_LETTERS[letter.lower()], match.end(), is_near=match[1] in _NEAR)
    return None


def _read_word(shape: str, match: re.Match[str], *, has_money: bool) -> Magnitude | None:
    link, word, end = match[1], match[2], match.end()
    name = word.lower()
    needs_money = name == _MM or (word in _US_STATES and link != "" and link not in HYPHENS)
    if needs_money and not has_money and not _has_money_after(shape, end):
        return None
    power = _POWERS[name]
    if name in _SPELLED and (second := _SECOND.match(shape, end)):  # rule 5
        power += _SPELLED[second[1].lower()]
        end = second.end()
    if name in _DOTTED and shape.startswith(".", end):  # rule 7
        is_word_next = shape[end + 1 : end + 2] in WORD_CHARACTERS
        end += 0 if is_word_next else 1
    return Magnitude(power, end, is_near=link in _NEAR)


def _has_money_after(shape: str, at: int) -> bool:
    return has_currency_at(shape, at) or _JOINED_MONEY.match(shape, at) is not None
