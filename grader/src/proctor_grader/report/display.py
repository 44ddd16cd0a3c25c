"""Pure: values and foreign texts in the form in which people see them.

Knows nothing of HTML: escaping is the template environment's.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

from proctor_grader.model.result import Cause, Outcome
from proctor_grader.numerals import render_decimal
from proctor_grader.store.redact import redact_patterns

OUTCOME_SIGNS = {
    Outcome.PASSED: "✓",
    Outcome.FAILED: "✕",
    Outcome.UNGRADED: "–",
    Outcome.ERROR: "!",
    Outcome.CANCELLED: "⊘",
}
CAUSE_TEXTS = {
    Cause.AGENT: "caused by the agent",
    Cause.SET: "caused by the eval set",
    Cause.GRADER: "caused by the grader",
    Cause.INFRA: "caused by the infrastructure",
}
MARGIN = 8_192
"""Read beyond a cut, so that a secret that lies across it is recognised and masked first."""

_MINUTE = 60
_HOUR = 3600
_DIGITS_SHOWN = 24
_DIGITS_READ = 80
_EXPONENT_SHOWN = 400


def _invisible() -> dict[int, str]:
    """Code points that hide or reorder text, each with what stands for it."""
    table = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
    table[0x7F] = "␡"
    named = [
        *range(0x80, 0xA0),  # C1 controls
        0x061C,
        *range(0x200E, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),  # direction marks, overrides and isolates
        0x00AD,
        0x200B,
        0x2060,
        0xFEFF,  # soft hyphen, zero-width space, word joiner, byte order mark
        0x2028,
        0x2029,
        0xFFFE,
        0xFFFF,
        *range(0xD800, 0xE000),  # unpaired surrogates can't be written as UTF-8
        *range(0xE0000, 0xE0080),  # tags: ASCII that no font shows
    ]
    table.update({code: f"⟨U+{code:04X}⟩" for code in named})
    return table


_VISIBLE = _invisible()


def visible(text: str) -> str:
    """Return the text with every control, direction and zero-width character made visible.

    Tabs and line feeds stay, CR LF becomes LF. Zero-width joiners stay: scripts and emoji need
    them. The result holds no character that XML 1.0 or UTF-8 refuses.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_VISIBLE)


class Shown(str):
    """Text that `shown` made, so that nobody needs to do it again."""

    __slots__ = ()


def shown(text: str) -> Shown:
    """Return the text as people may see it: secrets of known shapes masked, nothing hidden."""
    return text if isinstance(text, Shown) else Shown(visible(redact_patterns(text)))


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters; what was cut ends with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def excerpt(text: str, limit: int) -> Shown:
    """Return the shown text, cut to `limit` characters after masking: no half secret is left."""
    return Shown(cut(shown(text[: limit + MARGIN]), limit))


def one_line(text: str, limit: int) -> Shown:
    """Return the shown text on one line, white space squeezed, cut to `limit` characters."""
    return Shown(cut(" ".join(shown(text[: limit + MARGIN]).split()), limit))


def as_decimal(value: Any) -> Decimal | None:
    """Read a JSON value as an exact number; None for what is none (booleans, texts, NaN)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    try:
        number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def plain(value: Decimal) -> str:
    """Return a plain decimal: no exponent, no trailing zeros, no `-0`.

    Source: numbers.md, section 9.
    """
    if not -_EXPONENT_SHOWN < value.adjusted() < _EXPONENT_SHOWN:
        return str(value)  # what no check can hold is not written out in full
    return render_decimal(value)


def legible(value: Decimal) -> str:
    """Return a plain decimal unless it has so many digits that nobody would read them."""
    text = plain(value)
    return text if len(text) <= _DIGITS_READ else short(value)


def short(value: Decimal) -> str:
    """Return a plain decimal, or six significant digits with an exponent when it is too long."""
    text = plain(value)
    if len(text) <= _DIGITS_SHOWN:
        return text
    rounded = Context(prec=6, rounding=ROUND_HALF_EVEN).plus(value)
    brief = plain(rounded)
    return f"≈ {brief}" if len(brief) <= _DIGITS_SHOWN else f"≈ {rounded:.5E}"


def duration(seconds: float) -> str:
    """Return a duration for people: `350 ms`, `12.3 s`, `4 min 05 s`, `2 h 07 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"


def size(size_bytes: int) -> str:
    """Return a size for people in binary units: `812 B`, `4.0 KiB`, `63.9 MiB`."""
    amount = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def moment(iso: str) -> str:
    """Return an ISO 8601 moment for people, to the second; an empty text stays empty."""
    day, _, rest = iso.partition("T")
    if not rest:
        return iso
    zone = " UTC" if rest.endswith(("Z", "+00:00")) else rest[8:].lstrip(".0123456789")
    return f"{day} {rest[:8]}{zone}"


def count_of(number: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`, `5,000 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
