"""Digits that only name something: recognised before a number is tried.

Every function takes a shape and the place of a run of digits. None of them looks at more than
a bounded piece before that place, and whatever a pattern runs over in vain is passed by the
scan a bounded number of times: so the whole stays linear.
Source: spec/numbers.md, section 4.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from proctor_grader.numerals.numeral import SkipKind
from proctor_grader.numerals.shape import (
    BOUNDARY,
    CODES,
    DASH,
    HYPHEN,
    HYPHENS,
    LETTER,
    LETTERS,
    SPACE,
    WHITESPACE,
    WORD,
    WORD_CHARACTERS,
    is_joined_by_underscore,
)

NEXT: Final = re.compile(rf"[0-9]|(?<=[{WORD}])://")
"""What the scan stops at: a digit, or where a URL begins."""

_URL = re.compile(rf"://[^{WHITESPACE}<>\"|)\]'`]*+")

_LIST_MARKER = re.compile(
    rf"^[{SPACE}>#]*+(?:\*[{SPACE}>#]*+){{0,2}}(([0-9]{{1,3}})[.)])[{SPACE}]++(?=[^{WHITESPACE}])",
    re.MULTILINE,
)
_AM_PM = rf"[{SPACE}]?[aApP](?:[mM]|\.[mM]\.?)(?![{WORD}])"
_MINUTES = ":[0-5][0-9]"
_SECONDS = r":(?:[0-5][0-9]|60)(?:\.[0-9]++)?"
_CLOCK = (
    rf"(?:(?:[01][0-9]|2[0-4]){_MINUTES}(?:{_SECONDS})?"
    rf"|[0-9]{_MINUTES}(?:{_SECONDS}|(?={_AM_PM})))"
    rf"(?!:?[0-9])(?:{_AM_PM})?"
    rf"(?:Z(?![{WORD}])|[+\-−](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?(?![0-9]))?"
)
_CLOCK_TIME = re.compile(_CLOCK)
_UUID = rf"[0-9a-fA-F]{{8}}(?:[{HYPHEN}][0-9a-fA-F]{{4}}){{3}}[{HYPHEN}][0-9a-fA-F]{{12}}{BOUNDARY}"
_TIMESTAMP = rf"[0-9]{{4}}[{DASH}][0-9]{{2}}[{DASH}][0-9]{{2}}T{_CLOCK}"
_CHAIN = rf"{_TIMESTAMP}|[0-9]++(?:[{DASH}][0-9]++{BOUNDARY}){{2,}}+"
_YEAR_MONTH = rf"(?:19|20)[0-9]{{2}}[{DASH}](?:0[1-9]|1[0-2])(?![0-9])"
_SLASH_DATE = (
    r"(?:[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{4}|[0-9]{2})|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2})"
    rf"(?!\.?[0-9])(?:(?=T[0-9])|(?![{LETTER}]))"
)
_DATE_OR_ID = re.compile(f"({_UUID})|({_CHAIN})|({_YEAR_MONTH})|({_SLASH_DATE})")
_DATE_OR_ID_KINDS = [SkipKind.UUID, SkipKind.DASH_CHAIN, SkipKind.YEAR_MONTH, SkipKind.SLASH_DATE]
_JOINED_ID = re.compile(f"({_UUID})|({_SLASH_DATE})")
_JOINED_ID_KINDS = [SkipKind.UUID, SkipKind.SLASH_DATE]
_REST = re.compile(rf"[{WORD}]*+(?:[{HYPHEN}.][{WORD}]++|(?<=[0-9]),[0-9]{{3}}(?![0-9]))*+")
_MIXED_REST = re.compile(rf"[{WORD}]*+(?:[{HYPHEN}.][{WORD}]++)*+")


class Name(NamedTuple):
    """Digits that are no number, and where they end."""

    kind: SkipKind
    end: int


def list_numbers(shape: str) -> dict[int, int]:
    """Return start and end of the markers that count the items of an ordered list."""
    markers = list(_LIST_MARKER.finditer(shape))
    written = Counter(int(marker[2]) for marker in markers)
    return {
        marker.start(1): marker.end(1)
        for marker in markers
        if (number := int(marker[2])) - 1 in written
        or number + 1 in written
        or (number == 1 and written[1] > 1)
    }


def url_end(shape: str, at: int) -> int:
    """Return where the URL ends whose `://` stands at a place."""
    return _end(_URL, shape, at)


def clock_time_end(shape: str, at: int) -> int | None:
    """Return where the clock time that begins at a place ends, None without one."""
    if shape.find(":", at + 1, at + 3) < 0:
        return None
    clock = _CLOCK_TIME.match(shape, at)
    return clock.end() if clock else None


def is_leading_dot(shape: str, at: int, floor: int) -> bool:
    """Whether the dot before a place makes the digits there a decimal (section 3)."""
    dot = at - 1
    if dot < floor or shape[dot] != ".":
        return False
    return dot == 0 or (shape[dot - 1] not in WORD_CHARACTERS and shape[dot - 1] not in ".)]")


def code_start(shape: str, end: int) -> int | None:
    """Return where the currency code that ends at a place begins, None without one."""
    for length in (3, 2):
        start = end - length
        if start >= 0 and shape[start:end] in CODES:
            return start if start == 0 or shape[start - 1] not in WORD_CHARACTERS else None
    return None


def word_kind(shape: str, start: int, *, is_joined: bool) -> SkipKind | None:
    """Tell how the digits at a place belong to the word before them, None if they do not.

    Args:
        shape: of the whole text.
        start: place of the first digit or the leading dot.
        is_joined: a dash joins the digits to a number that was just read.
    """
    before = shape[start - 1] if start else ""
    if before == "^":
        return SkipKind.NAME_EXPONENT if shape[max(start - 2, 0)] in LETTERS else None
    if before in LETTERS:
        return SkipKind.GLUED if code_start(shape, start) is None else None
    if before == "_":
        return SkipKind.GLUED if is_joined_by_underscore(shape, start) else None
    if before in HYPHENS and not is_joined and _is_word_end(shape, start - 1):
        return SkipKind.HYPHENATED
    return None


def _is_word_end(shape: str, end: int) -> bool:
    if end == 0 or shape[end - 1] not in WORD_CHARACTERS:
        return False
    if shape[end - 1] == "_":
        return is_joined_by_underscore(shape, end)
    return code_start(shape, end) is None


def rest_end(shape: str, at: int) -> int:
    """Return where a name ends of which a piece begins at a place."""
    return _end(_REST, shape, at)


def mixed_end(shape: str, at: int) -> int:
    """Return where a token of digits and letters ends of which a piece begins at a place."""
    return _end(_MIXED_REST, shape, at)


def word_start(shape: str, at: int, floor: int) -> int:
    """Return where the word begins that reaches up to a place, not before `floor`."""
    while at > floor and (shape[at - 1] in WORD_CHARACTERS or shape[at - 1] in "-‐^"):
        at -= 1
    return at


def date_or_id(shape: str, at: int, *, is_joined: bool) -> Name | None:
    """Tell which date, phone number or id begins at a place, and where it ends.

    Args:
        shape: of the whole text.
        at: place of the first digit.
        is_joined: a dash joins the digits to a number that was just read.
    """
    # A number and what a dash joins to it are a range, never a chain or a month.
    pattern, kinds = (
        (_JOINED_ID, _JOINED_ID_KINDS) if is_joined else (_DATE_OR_ID, _DATE_OR_ID_KINDS)
    )
    match = pattern.match(shape, at)
    if match is None or match.lastindex is None:
        return None
    return Name(kinds[match.lastindex - 1], match.end())


def _end(pattern: re.Pattern[str], shape: str, at: int) -> int:
    match = pattern.match(shape, at)
    return match.end() if match else at
