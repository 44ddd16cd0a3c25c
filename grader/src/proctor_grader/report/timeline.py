"""Pure: a unit's stages on one time line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from proctor_grader.model.result import Outcome
from proctor_grader.model.unit import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.result import StageRecord

_ORDER = {stage.value: index for index, stage in enumerate(Stage)}
_NARROWEST = 0.6


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage.

    Attributes:
        offset: where its bar begins, in percent of the whole; likewise `width`.
        ended: in words: `done`, `exit code 1`, `timed out after ...`.
    """

    name: str
    outcome: Outcome
    seconds: float
    started_at: str
    offset: float
    width: float
    ended: str
    message: str


def timeline_of(stages: Mapping[str, StageRecord]) -> tuple[StageView, ...]:
    """Return the stages in the order in which they run; without clock times end to end."""
    named = sorted(stages.items(), key=lambda pair: _ORDER.get(pair[0], len(_ORDER)))
    starts = _starts([record for _, record in named])
    ends = [start + record.seconds for start, (_, record) in zip(starts, named, strict=True)]
    first = min(starts, default=0.0)
    whole = max(ends, default=0.0) - first or 1.0
    return tuple(
        StageView(
            name=name,
            outcome=Outcome.PASSED if record.ok else Outcome.FAILED,
            seconds=record.seconds,
            started_at=record.started_at,
            offset=round(min(100 * (start - first) / whole, 100 - _NARROWEST), 2),
            width=round(max(100 * record.seconds / whole, _NARROWEST), 2),
            ended=_ended(record),
            message=record.message,
        )
        for (name, record), start in zip(named, starts, strict=True)
    )


def _starts(records: list[StageRecord]) -> list[float]:
    known = [_clock(record.started_at) for record in records]
    if all(moment is not None for moment in known):
        return [moment for moment in known if moment is not None]
    at, starts = 0.0, []
    for record in records:
        starts.append(at)
        at += record.seconds
    return starts


def _clock(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _ended(record: StageRecord) -> str:
    parts = []
    if record.timed_out:
        parts.append("timed out")
    if record.exit_code is not None and not (record.ok and record.exit_code == 0):
        parts.append(f"exit code {record.exit_code}")
    if record.signal is not None:
        parts.append(f"ended by signal {record.signal}")
    if record.reason:
        parts.append(record.reason)
    return ", ".join(parts) or ("done" if record.ok else "failed")
