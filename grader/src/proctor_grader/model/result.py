"""What came out: verdicts, the one table that maps them to outcomes, and a unit's result."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.task import TaskId
    from proctor_grader.model.unit import UnitId


class Verdict(StrEnum):
    """The format's own word for how a unit ended."""

    CORRECT = "CORRECT"
    PARTIAL = "PARTIAL"
    OFF = "OFF"
    UNKNOWN = "UNKNOWN"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    TIMEOUT = "TIMEOUT"
    UNGRADED = "UNGRADED"
    NOT_GRADED = "NOT_GRADED"
    SETUP_FAILED = "SETUP_FAILED"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class Outcome(StrEnum):
    """What every verdict maps to."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"
    ERROR = "error"
    CANCELLED = "cancelled"


class Cause(StrEnum):
    """Whose doing it is when no answer was judged."""

    AGENT = "agent"
    SET = "set"
    GRADER = "grader"
    INFRA = "infra"


_OUTCOMES = {
    Verdict.CORRECT: Outcome.PASSED,
    Verdict.SUCCESS: Outcome.PASSED,
    Verdict.PARTIAL: Outcome.FAILED,
    Verdict.OFF: Outcome.FAILED,
    Verdict.UNKNOWN: Outcome.FAILED,
    Verdict.FAILURE: Outcome.FAILED,
    Verdict.TIMEOUT: Outcome.FAILED,
    Verdict.UNGRADED: Outcome.UNGRADED,
    Verdict.NOT_GRADED: Outcome.UNGRADED,
    Verdict.SETUP_FAILED: Outcome.ERROR,
    Verdict.CANCELLED: Outcome.CANCELLED,
}


def outcome_of(verdict: Verdict, cause: Cause | None) -> Outcome:
    """Map a verdict to its outcome; ERROR is the agent's failure or an error of the rest.

    Source: design.md, section 1.
    """
    if verdict is Verdict.ERROR:
        return Outcome.FAILED if cause is Cause.AGENT else Outcome.ERROR
    return _OUTCOMES[verdict]


@dataclass(frozen=True, slots=True)
class ItemResult:
    """One line of a criterion's judgement: a check, or one question about a table.

    Attributes:
        passed: None where it could not be judged.
        detail: what was found, for people.
        data: what the criterion's type adds (value, tolerance, closest, ...), JSON values.
    """

    name: str
    passed: bool | None
    detail: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the item as it stands in a result document."""
        return {"name": self.name, **self.data, "passed": self.passed, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What grading found, before it is put together with how the agent ended.

    Attributes:
        verdict: the format's word.
        cause: None where an answer or a branch was judged.
        truncated: the answer was longer than what is read of it.
        details: what the criteria's types add, JSON values.
    """

    verdict: Verdict
    cause: Cause | None = None
    reason: str = ""
    message: str = ""
    items: tuple[ItemResult, ...] = ()
    truncated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageRecord:
    """How one stage of an attempt went, as kept in its marker.

    Attributes:
        ok: it did what it is for; an agent that failed is not ok, and is graded all the same.
        reason: CamelCase word, empty when ok.
        exit_code: of the process, None without one or when a signal ended it.
        started_at: aware UTC, ISO 8601; likewise `ended_at`.
    """

    ok: bool
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    started_at: str = ""
    ended_at: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the record as it stands in markers and result documents."""
        return {
            "ok": self.ok,
            "reason": self.reason,
            "message": self.message,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "timed_out": self.timed_out,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> StageRecord:
        """Read a record back; keys that a marker adds are passed over."""
        names = (
            "ok",
            "reason",
            "message",
            "exit_code",
            "signal",
            "timed_out",
            "started_at",
            "ended_at",
        )
        return cls(**{name: document[name] for name in names}, seconds=float(document["seconds"]))


@dataclass(frozen=True, slots=True)
class UnitResult:
    """A unit's verdict with what it rests on; becomes `result.json` and is never rewritten.

    Attributes:
        cause: None where an answer was judged or the run was cancelled.
        reason: CamelCase word for an end that is not a plain judgement; empty otherwise.
        answer: the final answer as stored, cut to `ANSWER_SHOWN` characters; None without one.
        stages: by stage name, those that had ended when the result was written.
        captures: the capture summary by table, None when none was taken.
        usage: tokens and dollars as far as the agent told.
        evidence: object key -> sha256 of what grading read.
    """

    unit: UnitId
    task: TaskId
    variant: str
    trial: int
    attempt: int
    verdict: Verdict
    cause: Cause | None = None
    reason: str = ""
    message: str = ""
    answer: str | None = None
    items: tuple[ItemResult, ...] = ()
    truncated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, StageRecord] = field(default_factory=dict)
    captures: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """What the verdict maps to."""
        return outcome_of(self.verdict, self.cause)

    def to_json(self) -> dict[str, Any]:
        """Return the document that is stored as `result.json`."""
        return {
            "unit": self.unit,
            "task": self.task,
            "variant": self.variant,
            "trial": self.trial,
            "attempt": self.attempt,
            "verdict": self.verdict.value,
            "outcome": self.outcome.value,
            "cause": None if self.cause is None else self.cause.value,
            "reason": self.reason,
            "message": self.message,
            "answer": self.answer,
            "items": [item.to_json() for item in self.items],
            "truncated": self.truncated,
            "details": dict(self.details),
            "stages": {name: record.to_json() for name, record in self.stages.items()},
            "captures": None if self.captures is None else dict(self.captures),
            "usage": dict(self.usage),
            "evidence": dict(sorted(self.evidence.items())),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> UnitResult:
        """Read a stored `result.json` back; unknown keys of later versions are passed over."""
        known = {"name", "passed", "detail"}
        return cls(
            unit=document["unit"],
            task=document["task"],
            variant=document["variant"],
            trial=document["trial"],
            attempt=document["attempt"],
            verdict=Verdict(document["verdict"]),
            cause=None if document["cause"] is None else Cause(document["cause"]),
            reason=document["reason"],
            message=document["message"],
            answer=document["answer"],
            items=tuple(
                ItemResult(
                    name=item["name"],
                    passed=item["passed"],
                    detail=item["detail"],
                    data={key: value for key, value in item.items() if key not in known},
                )
                for item in document["items"]
            ),
            truncated=document["truncated"],
            details=document["details"],
            stages={
                name: StageRecord.from_json(record) for name, record in document["stages"].items()
            },
            captures=document["captures"],
            usage=document["usage"],
            evidence=document["evidence"],
        )


ANSWER_SHOWN = 20_000
