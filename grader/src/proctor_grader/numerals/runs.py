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

# The only group that matches is the fraction.
_GROUPED = r"[1-9][0-9]{0,2}"
_FRACTION = r"(?:\.([0-9]++))?"
_FORMS = re.compile(
    "|".join(
        (
            rf"[0-9]++{_FRACTION}",  # 1, 2
            rf"{_GROUPED}(?:,[0-9]{{3}})++{_FRACTION}",  # 3
            rf"[1-9][0-9]?(?:,[0-9]{{2}}(?![0-9]))++,[0-9]{{3}}{_FRACTION}",  # 4
            rf"{_GROUPED}(?:(?:[{APOSTROPHE}][0-9]{{3}})++|(?:_[0-9]{{3}})++|(?:\u00a0[0-9]{{3}})++)"
            r"(?:[.,]([0-9]++))?",  # 5
            rf"{_GROUPED}(?:\.[0-9]{{3}})++,([0-9]++)",  # 6, with a decimal comma
            rf"{_GROUPED}(?:\.[0-9]{{3}}){{2,}}+",  # 6, 7
            r"\.([0-9]++)",  # a leading dot
        )
    )
)
_DECIMAL_COMMA = re.compile(r"[0-9]++,([0-9]++)")  # 8
_PARTS_AT_MARKS = re.compile(rf"[^{APOSTROPHE}\u00a0]++")  # 10
_PARTS_AT_COMMAS = re.compile(r"[^,]++")  # 11
_SPLITTING = re.compile(rf"[,{APOSTROPHE}\u00a0]")
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


def skipped_run_kind(shape: str, start: int, end: int) -> SkipKind | None:
    """Tell why a run is no number as a whole, before anything around it is looked at.

    Rules 9 and 12; None for runs that fit a form or have to be split.
    """
    if _FORMS.fullmatch(shape, start, end):
        return None
    if shape.find("_", start, end) >= 0:
        return SkipKind.IDENTIFIER
    return None if _SPLITTING.search(shape, start, end) else SkipKind.VERSION


def read_run(shape: str, start: int, end: int, *, is_marked: bool) -> Iterator[Part]:
    """Read a run that is no skipped one, and its pieces where it has to be split.

    Args:
        shape: of the whole text.
        start: place of a leading dot, which belongs to the run, or of the first digit.
        end: place after the last digit, see `run_end`.
        is_marked: a currency, percent sign or magnitude makes a single comma a decimal mark.

    Yields:
        At least one part; the first begins at `start` and the last ends at `end`.
    """
    if part := _fit(shape, start, end, is_marked=is_marked):
        yield part
    else:
        for piece in _PARTS_AT_MARKS.finditer(shape, start, end):
            yield from _read_piece(shape, *piece.span(), is_marked=is_marked and piece.end() == end)


def _read_piece(shape: str, start: int, end: int, *, is_marked: bool) -> Iterator[Part]:
    """Read a piece without apostrophes and fixed spaces: rules 1 to 8, 11 and 12."""
    if part := _fit(shape, start, end, is_marked=is_marked):
        yield part
        return
    for piece in _PARTS_AT_COMMAS.finditer(shape, start, end):
        yield _fit(shape, *piece.span(), is_marked=False) or Part(
            *piece.span(), "", 0, SkipKind.VERSION
        )


def _fit(shape: str, start: int, end: int, *, is_marked: bool) -> Part | None:
    """Apply rules 1 to 8 to a piece as a whole."""
    match = _FORMS.fullmatch(shape, start, end)
    if match is None and is_marked:
        match = _DECIMAL_COMMA.fullmatch(shape, start, end)
    if match is None:
        return None
    written = match[0]
    if written.count(".") == 3 and "," not in written and _are_octets(written.split(".")):
        return Part(start, end, "", 0, SkipKind.IP_ADDRESS)
    digits = written.translate(_SEPARATORS)
    if len(digits) > MAX_DIGITS:
        return Part(start, end, "", 0, SkipKind.TOO_LONG)
    return Part(start, end, digits, len(match[match.lastindex]) if match.lastindex else 0)


def _are_octets(groups: list[str]) -> bool:
    return all(int(group) <= 255 for group in groups)
