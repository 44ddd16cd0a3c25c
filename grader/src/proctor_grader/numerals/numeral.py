"""What the number reader gives back: numbers and skipped tokens with their places."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal


class SkipKind(StrEnum):
    """Why digits are no number.

    Source: spec/numbers.md, section 3 (rules 7, 9, 12 and the digit limit), sections 4 and 5.
    """

    LIST_NUMBER = "list number"
    CLOCK_TIME = "clock time"
    NAME_EXPONENT = "exponent of a name"
    GLUED = "glued to a word"
    HYPHENATED = "hyphenated to a word"
    UUID = "UUID"
    DASH_CHAIN = "dash chain"
    YEAR_MONTH = "year and month"
    SLASH_DATE = "date with slashes"
    URL = "URL"
    MIXED = "mixed token"
    HEX = "hexadecimal"
    IP_ADDRESS = "IPv4 address"
    IDENTIFIER = "identifier"
    VERSION = "version, date or address with dots"
    TOO_LONG = "more than 100 digits"
    EXPONENT_RANGE = "exponent out of range"


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as it was read.

    Attributes:
        value: finite and exact, with its written scale; never -0.
        start: place of its first character in the text: the sign or currency, if it has one.
        end: place after its last character, a glued unit or the magnitude included.
        text: what lies between.
    """

    value: Decimal
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Digits that name something, or are too many to be a number."""

    start: int
    end: int
    text: str
    kind: SkipKind


@dataclass(frozen=True, slots=True)
class Numbers:
    """All that was read of a text, in its order; no two places overlap.

    Attributes:
        numbers: at most 10,000.
        skipped: for display only; at most the first 10,000.
        truncated: the text is longer than what is read of it, or has more numbers.
    """

    numbers: tuple[Numeral, ...]
    skipped: tuple[Skipped, ...]
    truncated: bool

    @property
    def values(self) -> tuple[Decimal, ...]:
        """The values alone, in the order of the text."""
        return tuple(number.value for number in self.numbers)


def render_decimal(value: Decimal) -> str:
    """Return a plain decimal: no exponent, no trailing zeros, no `-0`.

    Source: spec/numbers.md, section 9.
    """
    plain = format(value, "f")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return "0" if plain == "-0" else plain
