"""Pure: one number check as a small inline SVG, drawn by hand.

A band for what the tolerance allows, a line for the expected value, a mark for what came closest.
Positions are worked out in exact decimals, so values of any size and any distance can be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal

from markupsafe import Markup, escape

from proctor_grader.report.display import plain, short

ZERO_WITHIN = Decimal("0.000000001")
"""What a gold of 0 accepts instead of a tolerance. Source: numbers.md, section 9."""

WIDTH, HEIGHT = 360, 64
_LEFT, _RIGHT, _AXIS = 14, WIDTH - 14, 30
_BAND = 3.0
"""Narrowest band that can be seen."""
_EXACT = Context(prec=60)
_LOG = Context(prec=12)
_FAR = 12
"""A linear scale still shows the band when the mark is up to so many half-widths away."""


@dataclass(frozen=True, slots=True)
class CheckPlot:
    """What is drawn of one check.

    Attributes:
        got: the number that came closest, None when none was read.
    """

    value: Decimal
    tolerance: Decimal
    got: Decimal | None
    passed: bool | None

    @property
    def low(self) -> Decimal:
        """Smallest number that passes."""
        return _EXACT.subtract(self.value, self._reach)

    @property
    def high(self) -> Decimal:
        """Largest number that passes."""
        return _EXACT.add(self.value, self._reach)

    @property
    def _reach(self) -> Decimal:
        if self.value == 0:
            return ZERO_WITHIN
        return _EXACT.multiply(self.tolerance, abs(self.value))

    @property
    def deviation(self) -> str:
        """How far off the closest number is: `20 % above`, `12 times as large`, or empty."""
        if self.got is None or self.got == self.value:
            return ""
        if self.value == 0:
            return f"off by {short(abs(self.got))}"
        ratio = _EXACT.divide(self.got, self.value)
        if ratio < 0:
            return "of the opposite sign"
        if ratio >= _FAR:
            return f"{_rounded(ratio)} times as large"
        if 0 < ratio * _FAR <= 1:
            return f"{_rounded(_EXACT.divide(Decimal(1), ratio))} times as small"
        percent = _rounded(abs(_EXACT.multiply(ratio - 1, Decimal(100))))
        # "above" is said of the number line, which runs the other way for negative values
        return f"{percent} % {'above' if self.got > self.value else 'below'}"

    @property
    def description(self) -> str:
        """The plot in words, for readers who can't see it."""
        allowed = (
            short(self.low) if self.low == self.high else f"{short(self.low)} to {short(self.high)}"
        )
        if self.got is None:
            return (
                f"Allowed {allowed}, expected {short(self.value)}, no number found in the answer."
            )
        place = "inside" if self.passed else "outside"
        return (
            f"Allowed {allowed}, expected {short(self.value)}, closest {short(self.got)}: {place}."
        )


def _rounded(value: Decimal) -> str:
    digits = Context(prec=3).plus(value)
    return plain(digits) if digits.adjusted() < 15 else f"{digits:.1E}"


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps numbers to horizontal positions; what lies beyond the ends stays at the edge."""

    start: Decimal
    end: Decimal
    logarithmic: bool = False

    def x(self, value: Decimal) -> float:
        inside = min(max(value, self.start), self.end)
        at, start, end = (self._project(each) for each in (inside, self.start, self.end))
        span = _EXACT.subtract(end, start)
        if span <= 0:  # ends that differ beyond the digits that are worked with
            return (_LEFT + _RIGHT) / 2
        share = float(_EXACT.divide(_EXACT.subtract(at, start), span))
        return round(_LEFT + share * (_RIGHT - _LEFT), 1)

    def _project(self, value: Decimal) -> Decimal:
        if not self.logarithmic:
            return value
        size = _LOG.log10(abs(value))
        return -size if value < 0 else size


def _scale_of(plot: CheckPlot) -> _Scale:
    """Linear; logarithmic when that would crush the band; cut at the edge when neither fits."""
    low, high, got, reach = plot.low, plot.high, plot.got, _EXACT.subtract(plot.high, plot.value)
    first, last = (low, high) if got is None else (min(low, got), max(high, got))
    if first == last:  # tolerance 0 and met, or nothing found: any room will do
        return _padded(first, last, abs(first) / 20 or Decimal(1))
    beyond = max(_EXACT.subtract(low, first), _EXACT.subtract(last, high))
    if reach == 0 or beyond <= _FAR * reach:
        return _padded(first, last, _EXACT.subtract(last, first) / 8)
    if first > 0 or last < 0:
        return _padded_log(first, last)
    return _padded(low, high, 3 * reach)


def _padded(first: Decimal, last: Decimal, by: Decimal) -> _Scale:
    return _Scale(_EXACT.subtract(first, by), _EXACT.add(last, by))


def _padded_log(first: Decimal, last: Decimal) -> _Scale:
    decades = abs(_LOG.subtract(_LOG.log10(abs(last)), _LOG.log10(abs(first))))
    by = _LOG.power(Decimal(10), _LOG.multiply(decades, Decimal("0.08")))
    if first > 0:
        return _Scale(_EXACT.divide(first, by), _EXACT.multiply(last, by), logarithmic=True)
    return _Scale(_EXACT.multiply(first, by), _EXACT.divide(last, by), logarithmic=True)


def scale_note(plot: CheckPlot) -> str:
    """Return what a reader must know to read the plot; empty for a plain linear one."""
    scale = _scale_of(plot)
    if scale.logarithmic:
        return "logarithmic scale"
    if plot.got is not None and not scale.start <= plot.got <= scale.end:
        return "the closest number is off the scale"
    return ""


def render_check_plot(plot: CheckPlot) -> Markup:
    """Return the plot as an SVG element without scripts, styles or references."""
    scale = _scale_of(plot)
    left, right, middle = scale.x(plot.low), scale.x(plot.high), scale.x(plot.value)
    if right - left < _BAND:
        left, right = middle - _BAND / 2, middle + _BAND / 2
    top = _AXIS - 9
    parts = [
        f'<line class="axis" x1="0" y1="{_AXIS}" x2="{WIDTH}" y2="{_AXIS}"/>',
        f'<rect class="band" x="{left:g}" y="{top}" width="{right - left:g}" height="18" rx="3"/>',
        f'<line class="expected" x1="{middle:g}" y1="{top}" x2="{middle:g}" y2="{top + 24}"/>',
        _label("expected-text", middle, HEIGHT - 5, f"expected {short(plot.value)}"),
    ]
    if plot.got is not None:
        at = scale.x(plot.got)
        off = not scale.start <= plot.got <= scale.end
        kind = "hit" if plot.passed else "miss"
        parts.append(_mark(kind, at, plot.got > plot.value if off else None))
        parts.append(_label(f"got-text {kind}", at, 12, f"got {short(plot.got)}"))
    return Markup(  # noqa: S704 - every text in it went through escape
        f'<svg class="check-plot" role="img" aria-label="{escape(plot.description)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'
    )


def _mark(kind: str, x: float, off_to_the_right: bool | None) -> str:
    """A disc for a hit, a cross for a miss, an arrow head for what is off the scale."""
    y = _AXIS
    if off_to_the_right is not None:
        tip, back = (x + 12, x + 1) if off_to_the_right else (x - 12, x - 1)
        return f'<path class="mark {kind}" d="M{tip:g} {y}L{back:g} {y - 7}V{y + 7}Z"/>'
    if kind == "hit":
        return f'<circle class="mark hit" cx="{x:g}" cy="{y}" r="5"/>'
    a, b = f"M{x - 5:g} {y - 5}L{x + 5:g} {y + 5}", f"M{x - 5:g} {y + 5}L{x + 5:g} {y - 5}"
    return f'<path class="mark miss cross" d="{a}{b}"/>'


def _label(kind: str, x: float, y: int, text: str) -> str:
    share = (x - _LEFT) / (_RIGHT - _LEFT)
    if share < 1 / 3:
        anchor, at = "start", max(x - 12, 1)
    elif share > 2 / 3:
        anchor, at = "end", min(x + 12, WIDTH - 1)
    else:
        anchor, at = "middle", x
    return f'<text class="{kind}" x="{at:g}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
