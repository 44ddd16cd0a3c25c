"""The alphabet of the number reader: a text's shape and the classes of characters in it.

A shape is as long as its text, so a place in one is the same place in the other. Each digit
stands as its ASCII digit, each kind of dash, space and currency sign as one character, so every
pattern of this package works on small, mostly ASCII classes.
Source: spec/numbers.md, section 1.
"""

from __future__ import annotations

import unicodedata
from typing import Final

# Classes as they are written inside the brackets of a pattern.
LETTER: Final = "A-Za-zø"  # ø stands for every cased letter beyond ASCII
WORD: Final = f"0-9{LETTER}_"
SPACE: Final = " \\t\u00a0"  # U+00A0 stands for every fixed space
HYPHEN: Final = "\\-‐"  # ‐ stands for U+2010 and U+2011
DASH: Final = f"{HYPHEN}–−"  # – stands for all dashes that are neither a hyphen nor the minus
WHITESPACE: Final = f"{SPACE}\\n\u2003"  # U+2003 stands for all other white space
MARK: Final = "*_`"
APOSTROPHE: Final = "'’"

BOUNDARY: Final = f"(?!_*+[0-9{LETTER}])"
"""No word goes on here; emphasis may end here."""

CODES: Final = frozenset(
    (
        *("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "RMB", "INR", "HKD"),
        *("SGD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RON", "BRL", "MXN", "ZAR", "KRW"),
        *("TRY", "ILS", "AED", "SAR", "THB", "Rs"),
    )
)
CODE: Final = f"(?:{'|'.join(sorted(CODES))})"
SIGN: Final = r"[A-Z]{0,3}\\?\$"
"""A currency sign with what may be glued before it; $ stands for every sign."""

_LETTER_CATEGORIES = frozenset(("Lu", "Ll", "Lt"))
_LINE_BREAKS = frozenset("\n\r\v\f\x85\u2028\u2029")
_ALIKE = {
    **dict.fromkeys("\u00a0\u202f\u2009", "\u00a0"),
    **dict.fromkeys("\u2010\u2011", "‐"),
    **dict.fromkeys("\u2012\u2013\ufe63\uff0d", "–"),
    **dict.fromkeys("\uff05\ufe6a\u066a", "%"),
    **dict.fromkeys(_LINE_BREAKS, "\n"),
    "\t": "\t",
    " ": " ",
}


class _Shapes(dict[int, int | str]):
    """A table for `str.translate` that fills itself, once for each character that occurs.

    One per text: a shared one would grow with every text that is ever read.
    """

    def __missing__(self, code: int) -> int | str:
        shape = self[code] = _shape_of_character(chr(code))
        return shape


def _shape_of_character(character: str) -> str:
    alike = _ALIKE.get(character)
    if alike is not None:
        return alike
    if character.isspace():
        return "\u2003"
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category == "Sc":
        return "$"
    if category in _LETTER_CATEGORIES and not character.isascii():
        return "ø"
    return character


def shape_of(text: str) -> str:
    """Return the shape of a text, character for character."""
    return text.translate(_Shapes())


WORD_CHARACTERS: Final = frozenset(
    "0123456789_øABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
LETTERS: Final = WORD_CHARACTERS - frozenset("0123456789_")
DIGITS: Final = frozenset("0123456789")
HYPHENS: Final = frozenset("-‐")
DASHES: Final = frozenset("-‐–−")
WHITESPACES: Final = frozenset(" \t\u00a0\n\u2003")


def is_joined_by_underscore(shape: str, at: int) -> bool:
    """Whether the `_` before a place belong to a word, and are no opening emphasis.

    Emphasis is up to three `_` after no word character. False where no `_` stands before `at`.
    """
    first = at
    while first > 0 and at - first < 3 and shape[first - 1] == "_":
        first -= 1
    return 0 < first < at and shape[first - 1] in WORD_CHARACTERS
