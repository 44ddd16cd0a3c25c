"""The digit run: which numbers a run of digits and separators stands for.

Source: spec/numbers.md, section 3; the rule numbers below are those of its table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from proctor_grader.numerals.numeral import SkipKind
from proctor_grader.numerals.shape import APOSTROPHE

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DIGITS: Final = 100

_RUN = re.compile(rf"[0-9]++(?:[,.{APOSTROPHE}_\u00a0][0-9]++)*+")

# Group 1: the whole part, group 2: the fraction without its mark.
_GROUPED = r"[1-9][0-9]{0,2}"
_FORMS: Final = (
    re.compile(r"([0-9]++)(?:\.([0-9]++))?"),  # 1, 2
    re.compile(rf"({_GROUPED}(?:,[0-9]{{3}})++)(?:\.([0-9]++))?"),  # 3
    re.compile(r"([1-9][0-9]?(?:,[0-9]{2}(?![0-9]))++,[0-9]{3})(?:\.([0-9]++))?"),  # 4
    re.compile(
        rf"({_GROUPED}(?:(?:[{APOSTROPHE}][0-9]{{3}})++|(?:_[0-9]{{3}})++|(?:\u00a0[0-9]{{3}})++))"
        r"(?:[.,]([0-9]++))?"
    ),  # 5
    re.compile(rf"({_GROUPED}(?:\.[0-9]{{3}})++),([0-9]++)"),  # 6, with a decimal comma
    re.compile(r"()\.([0-9]++)"),  # a leading dot
)
_DOT_GROUPED = re.compile(rf"({_GROUPED}(?:\.[0-9]{{3}}){{2,}}+)")  # 6 and 7
_DECIMAL_COMMA = re.compile(r"([0-9]++),([0-9]++)")  # 8
_PARTS_AT_MARKS = re.compile(rf"[^{APOSTROPHE}\u00a0]++")  # 10
_PARTS_AT_COMMAS = re.compile(r"[^,]++")  # 11
_SEPARATORS = str.maketrans("", "", ",.'’_\u00a0")


class Part(NamedTuple):
    """One number of a run, or a piece that is none.

    Attributes:
        digits: all digits, the fraction's included; empty where `skip` says why it is no number.
        scale: how many of the digits are the fraction.
    """

    start: int
    end: int
    digits: str
    scale: int
    skip: SkipKind | None = None


def run_end(shape: str, at: int) -> int:
    """Return where the run that begins at a place ends: digits, then (a separator, digits)."""
    run = _RUN.match(shape, at)
    return run.end() if run else at


def read_run(shape: str, start: int, end: int, *, is_marked: bool) -> Iterator[Part]:
    """Read a whole run, and its pieces where it has to be split.

    Args:
        shape: of the whole text.
        start: place of a leading dot, which belongs to the run, or of the first digit.
        end: place after the last digit, see `run_end`.
        is_marked: a currency, percent sign or magnitude makes a single comma a decimal mark.

    Yields:
        At least one part; the first begins at `start` and the last ends at `end`.
    """
    part = _fit(shape, start, end, is_marked=is_marked)
    if part is not None:
        yield part
    elif shape.find("_", start, end) >= 0:
        yield Part(start, end, "", 0, SkipKind.IDENTIFIER)
    else:
        for piece in _PARTS_AT_MARKS.finditer(shape, start, end):
            marked_piece = is_marked and piece.end() == end
            yield from _read_piece(shape, *piece.span(), is_marked=marked_piece)


def _read_piece(shape: str, start: int, end: int, *, is_marked: bool) -> Iterator[Part]:
    """Read a piece without apostrophes and fixed spaces: rules 1 to 8, 11 and 12."""
    part = _fit(shape, start, end, is_marked=is_marked)
    if part is not None:
        yield part
        return
    for piece in _PARTS_AT_COMMAS.finditer(shape, start, end):
        yield _fit(shape, *piece.span(), is_marked=False) or Part(
            *piece.span(), "", 0, SkipKind.VERSION
        )


def _fit(shape: str, start: int, end: int, *, is_marked: bool) -> Part | None:
    """Apply rules 1 to 8 to a piece as a whole."""
    for form in _FORMS:
        if match := form.fullmatch(shape, start, end):
            return _part(match)
    if match := _DOT_GROUPED.fullmatch(shape, start, end):
        octets = match[0].split(".")
        if len(octets) == 4 and all(int(octet) <= 255 for octet in octets):
            return Part(start, end, "", 0, SkipKind.IP_ADDRESS)
        return _part(match)
    if is_marked and (match := _DECIMAL_COMMA.fullmatch(shape, start, end)):
        return _part(match)
    return None


def _part(match: re.Match[str]) -> Part:
    whole, *rest = match.groups()
    fraction = rest[0] if rest and rest[0] else ""
    digits = whole.translate(_SEPARATORS) + fraction
    if len(digits) > MAX_DIGITS:
        return Part(*match.span(), "", 0, SkipKind.TOO_LONG)
    return Part(*match.span(), digits, len(fraction))
