"""The scan: one pass over a text from left to right that reads its numbers.

Work and memory are linear in the text. It knows no clock, no file and no decimal context.
Source: spec/numbers.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from proctor_grader.numerals.names import (
    NEXT,
    clock_time_end,
    date_or_id,
    is_leading_dot,
    list_numbers,
    rest_end,
    url_end,
    word_kind,
    word_start,
)
from proctor_grader.numerals.numeral import Numbers, Numeral, SkipKind, Skipped
from proctor_grader.numerals.prefix import Prefix, read_prefix
from proctor_grader.numerals.runs import Part, read_run, run_end, skipped_run_kind
from proctor_grader.numerals.shape import DASH, DASHES, SPACE, shape_of
from proctor_grader.numerals.suffix import Suffix, read_suffix

MAX_CHARACTERS: Final = 1_000_000
MAX_NUMBERS: Final = 10_000
MAX_SKIPPED: Final = 10_000
MAX_EMPHASIS: Final = 3
CUT_MARGIN: Final = 64
"""Numbers that end in so many last characters of a cut text may be cut themselves."""

_RANGE_LINK = re.compile(rf"[{SPACE}]?[{DASH}][{SPACE}]?|[{SPACE}][tT][oO][{SPACE}]")


def extract_numbers(text: str) -> Numbers:
    """Read every number of a text, with its written scale.

    Source: spec/numbers.md.
    """
    is_cut = len(text) > MAX_CHARACTERS
    scan = _Scan(text[:MAX_CHARACTERS])
    scan.run()
    last_end = MAX_CHARACTERS - CUT_MARGIN if is_cut else MAX_CHARACTERS
    return Numbers(
        numbers=tuple(
            Numeral(found.value(), found.start, found.end, text[found.start : found.end])
            for found in scan.found[:MAX_NUMBERS]
            if found.end <= last_end
        ),
        skipped=tuple(
            Skipped(start, end, text[start:end], kind) for start, end, kind in scan.skipped
        ),
        truncated=is_cut or len(scan.found) > MAX_NUMBERS,
    )


@dataclass(slots=True)
class _Found:
    """A number while the scan may still learn more about it.

    Attributes:
        exponent: power of ten that the digits are multiplied with, without the magnitude.
        has_money: see section 1.
        is_bare: neither exponent nor magnitude nor unit.
    """

    start: int
    end: int
    digits: str
    exponent: int
    magnitude: int
    has_money: bool
    is_bare: bool

    def written(self) -> Decimal:
        """Return the value without its magnitude."""
        return _decimal(self.digits, self.exponent)

    def value(self) -> Decimal:
        """Return the value."""
        return _decimal(self.digits, self.exponent + self.magnitude)


def _decimal(digits: str, exponent: int) -> Decimal:
    """Put a value together by its text: exact in every decimal context, as arithmetic is not."""
    if not digits.strip("-0"):
        return Decimal(0)
    return Decimal(digits + "0" * exponent if exponent > 0 else f"{digits}E{exponent}")


class _Scan:
    """One pass over a text.

    Attributes:
        found: up to one more than what may be kept.
        skipped: places and kinds of the first skipped tokens.
    """

    def __init__(self, text: str) -> None:
        self.found: list[_Found] = []
        self.skipped: list[tuple[int, int, SkipKind]] = []
        self._shape = shape_of(text)
        self._list_numbers = list_numbers(self._shape)
        self._floor = 0  # end of what was read; nothing is read twice

    def run(self) -> None:
        """Fill `found` and `skipped`."""
        while len(self.found) <= MAX_NUMBERS and (match := NEXT.search(self._shape, self._floor)):
            if match[0] == "://":
                self._skip(match.start(), url_end(self._shape, match.start()), SkipKind.URL)
            else:
                self._read_digits(match.start())

    def _read_digits(self, at: int) -> None:
        """Read the token to which the digits at a place belong; the order is section 4's."""
        shape = self._shape
        if at in self._list_numbers:
            self._skip(at, self._list_numbers[at], SkipKind.LIST_NUMBER)
            return
        if clock_end := clock_time_end(shape, at):
            self._skip(at, clock_end, SkipKind.CLOCK_TIME)
            return
        start = at - 1 if is_leading_dot(shape, at, self._floor) else at
        is_joined = self._is_joined(start)
        if kind := word_kind(shape, start, is_joined=is_joined):
            self._skip(word_start(shape, start, self._floor), rest_end(shape, at), kind)
        elif start == at and (name := date_or_id(shape, at, is_joined=is_joined)):
            self._skip(at, name.end, name.kind)
        else:
            self._read_run(start, run_end(shape, at), is_joined=is_joined)

    def _is_joined(self, start: int) -> bool:
        """Whether a dash joins a place to the number that was just read."""
        dash = start - 1
        if dash < self._floor or self._shape[dash] not in DASHES or not self.found:
            return False
        end = self.found[-1].end
        return dash - end <= MAX_EMPHASIS and not self._shape[end:dash].strip("_")

    def _read_run(self, start: int, end: int, *, is_joined: bool) -> None:
        shape = self._shape
        if kind := skipped_run_kind(shape, start, end):
            self._skip(start, end, kind)
            return
        prefix = read_prefix(shape, start, self._floor)
        has_money = prefix.has_currency or (is_joined and self.found[-1].has_money)
        suffix = read_suffix(shape, start, end, has_money=has_money)
        is_marked = prefix.has_currency or suffix.marks_comma
        for part in read_run(shape, start, end, is_marked=is_marked):
            if part.end < end:
                after = Suffix(part.end)
            elif part.start == start:
                after = suffix
            else:
                after = read_suffix(shape, part.start, end, has_money=False)
            if part.start == start:
                self._add(part, prefix, after, has_money=has_money)
            else:
                self._add(part, Prefix(part.start), after, has_money=False)
            if len(self.found) > MAX_NUMBERS:
                return

    def _add(self, part: Part, prefix: Prefix, suffix: Suffix, *, has_money: bool) -> None:
        skip = part.skip or suffix.skip
        if skip is not None:
            is_whole_token = suffix.skip is not None or skip is SkipKind.TOO_LONG
            self._skip(part.start, suffix.end if is_whole_token else part.end, skip)
            return
        number = _Found(
            start=prefix.start,
            end=suffix.end,
            digits="-" + part.digits if prefix.is_negative else part.digits,
            exponent=suffix.exponent - part.scale,
            magnitude=suffix.magnitude,
            has_money=has_money,
            is_bare=suffix.is_bare,
        )
        if number.magnitude and self.found:
            self._share_magnitude(self.found[-1], number)
        self.found.append(number)
        self._floor = number.end

    def _share_magnitude(self, low: _Found, high: _Found) -> None:
        """Give the magnitude of a range's upper end to its lower one (section 7, rule 6)."""
        is_range = _RANGE_LINK.fullmatch(self._shape, low.end, high.start) is not None
        if is_range and low.is_bare and low.written() < high.written():
            low.magnitude = high.magnitude
            low.is_bare = False

    def _skip(self, start: int, end: int, kind: SkipKind) -> None:
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append((start, end, kind))
        self._floor = end
