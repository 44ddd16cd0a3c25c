"""What an attempt left behind, as grading and the planner see it. Immutable once it is stored."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proctor_grader.model.process import ProcessEnd
from proctor_grader.model.result import StageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Evidence:
    """An agent's evidence.

    Attributes:
        answer: the final answer as it is stored; None where the agent left none. An empty text is
            an answer.
        answer_source: file it was taken from: `answer.txt`, `stdout.log`; empty without an answer.
        usage: tokens and dollars as far as the agent told.
        notes: what was cut or left out and why, for people.
        files: object key -> sha256 in hex, of everything that is stored but the marker.
    """

    answer: str | None
    end: ProcessEnd
    answer_source: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Return the document that is stored as `exit.json`."""
        return {
            **self.end.to_json(),
            "answer_source": self.answer_source,
            "usage": dict(self.usage),
            "notes": list(self.notes),
        }

    @classmethod
    def from_facts(
        cls, facts: Mapping[str, Any], answer: str | None, files: Mapping[str, str]
    ) -> Evidence:
        """Put stored evidence together again; unknown keys of later versions are passed over."""
        return cls(
            answer=answer,
            end=ProcessEnd.from_json(facts),
            answer_source=facts["answer_source"],
            usage=facts["usage"],
            notes=tuple(facts["notes"]),
            files=files,
        )


def stage_record(end: ProcessEnd, who: str = "Agent") -> StageRecord:
    """Say how a process's stage went.

    Args:
        end: of the process.
        who: `Agent`, `Setup` or `Teardown`: what reasons begin with and messages speak of.
    """
    reason, message = _reason(end, who)
    return StageRecord(
        ok=not reason,
        reason=reason,
        message=message,
        exit_code=end.exit_code,
        signal=end.signal,
        timed_out=end.timed_out,
        started_at=end.started_at.isoformat(),
        ended_at=end.ended_at.isoformat(),
        seconds=round(end.seconds, 6),
    )


def _reason(end: ProcessEnd, who: str) -> tuple[str, str]:
    if end.start_error:
        return f"{who}NotStarted", end.start_error
    if end.cancelled:
        return f"{who}Stopped", "it was stopped before it ended"
    if end.timed_out:
        return f"{who}Timeout", f"it had not ended after {end.seconds:.0f} seconds"
    if end.out_of_disk:
        return f"{who}DiskExceeded", "it wrote more to its folders than it may"
    if end.signal is not None:
        return f"{who}Crashed", f"it was ended by signal {_signal_name(end.signal)}"
    if end.exit_code != 0:
        return f"{who}Crashed", f"it ended with exit code {end.exit_code}"
    return "", ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
