"""Pure: an answer cut into pieces, so that the numbers which checks were held against stand out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from proctor_grader.report.display import Shown, visible
from proctor_grader.store.redact import redact_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from proctor_grader.model.result import ItemResult


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the answer.

    Attributes:
        kind: `hit` for a number that satisfied a check, `miss` for the one that came closest to a
            check that failed, empty for all other text.
        checks: names of those checks.
    """

    text: str
    kind: str = ""
    checks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Span:
    start: int
    end: int
    kind: str
    checks: list[str]


def answer_pieces(answer: str, items: Iterable[ItemResult]) -> tuple[Piece, ...]:
    """Cut an answer at the numbers its checks name; together the pieces are the masked answer.

    A number that masking took away, or that lies beyond the text, is not marked.
    """
    masked = redact_patterns(answer)
    spans = _moved(_spans(items), answer, masked)
    return tuple(_cut(masked, spans))


def _spans(items: Iterable[ItemResult]) -> list[_Span]:
    found: dict[tuple[int, int], _Span] = {}
    for item in items:
        closest = item.data.get("closest")
        if not isinstance(closest, Mapping):
            continue
        start, end = closest.get("start"), closest.get("end")
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end):
            continue
        span = found.setdefault((start, end), _Span(start, end, "miss", []))
        span.checks.append(item.name)
        if item.passed:
            span.kind = "hit"
    return [found[place] for place in sorted(found)]


def _moved(spans: Sequence[_Span], answer: str, masked: str) -> list[_Span]:
    """Move spans to where their text stands in the masked answer; drop those that are touched."""
    if masked == answer:
        return list(spans)
    before = _alike(answer, masked)
    after = _alike(answer[before:][::-1], masked[before:][::-1])
    shift = len(masked) - len(answer)
    moved = [span for span in spans if span.end <= before]
    moved += [
        _Span(span.start + shift, span.end + shift, span.kind, span.checks)
        for span in spans
        if span.start >= len(answer) - after
    ]
    return moved


def _alike(one: str, other: str) -> int:
    """Number of characters at the start in which two texts agree."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _seen(masked: str) -> Shown:
    return Shown(visible(masked))


def _cut(text: str, spans: Sequence[_Span]) -> Iterator[Piece]:
    at = 0
    for span in spans:
        if span.start < at or span.end > len(text):
            continue
        if span.start > at:
            yield Piece(_seen(text[at : span.start]))
        yield Piece(_seen(text[span.start : span.end]), span.kind, tuple(span.checks))
        at = span.end
    if at < len(text):
        yield Piece(_seen(text[at:]))
