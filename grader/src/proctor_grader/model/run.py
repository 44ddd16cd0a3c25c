"""A finished run: what was run, its totals and gates. Becomes `run.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from proctor_grader.model.unit import RunId


class RunEnd(StrEnum):
    """How a run ended as a whole; wrong answers are `Complete`."""

    COMPLETE = "Complete"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True)
class Totals:
    """Units by outcome, with what accuracy needs to leave out.

    Attributes:
        ungraded_set: ungraded with cause `set`: there is nothing to grade.
        ungraded_grader: ungraded with cause `grader`.
        infra: units whose cause is `infra`.
    """

    total: int = 0
    passed: int = 0
    failed: int = 0
    ungraded: int = 0
    error: int = 0
    cancelled: int = 0
    ungraded_set: int = 0
    ungraded_grader: int = 0
    infra: int = 0

    def outcomes(self) -> dict[str, int]:
        """Counts by outcome, in the order people read them."""
        return {outcome.value: getattr(self, outcome.value) for outcome in Outcome}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Percent with two decimals, half up; None where nothing was to be graded.

    Attributes:
        value: 100 x passed / units that have something to grade.
        measured: the same without units whose cause is `infra`.
    """

    value: Decimal | None
    measured: Decimal | None


@dataclass(frozen=True, slots=True)
class GateResult:
    """One condition on a finished run."""

    name: str
    want: str
    got: str
    passed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the gate as it stands in `run.json`."""
        return {"name": self.name, "want": self.want, "got": self.got, "passed": self.passed}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The warehouse build that a run was made on.

    Attributes:
        found: None when it could not be computed; `reason` says why.
        pinned: what the set expects, empty for nothing.
    """

    found: str | None
    pinned: str = ""
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fingerprint as it stands in `run.json`."""
        return {"found": self.found, "pinned": self.pinned, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything about a finished run but its units' results.

    Attributes:
        format: of the set; likewise `set_name`, `set_description`, `commit` (empty if unknown).
        agent: kind and argument for people, without secrets, by variant.
        warehouse: base for people, without a password; empty for none.
        started_at: aware UTC, ISO 8601; likewise `ended_at`.
        totals: by variant.
        passed: whether every gate holds; None when the run was not carried out.
        notices: what a reader should know (no sandbox, tolerated isolation, ...).
        coverage: the figures of `coverage_of`.
        results: unit id -> number of the result in force, only where it is not the first.
    """

    id: RunId
    set_name: str
    format: str
    end: RunEnd
    started_at: str
    ended_at: str
    seconds: float
    totals: Mapping[str, Totals]
    accuracy: Mapping[str, Accuracy]
    gates: tuple[GateResult, ...]
    passed: bool | None
    reason: str = ""
    message: str = ""
    set_description: str = ""
    commit: str = ""
    agent: Mapping[str, str] = field(default_factory=dict)
    warehouse: str = ""
    store: str = ""
    parallel: int = 1
    sandbox: str = ""
    fingerprint: Fingerprint = field(default_factory=lambda: Fingerprint(None))
    notices: tuple[str, ...] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the document that is stored as `run.json`."""
        return {
            "id": self.id,
            "set": {
                "name": self.set_name,
                "description": self.set_description,
                "format": self.format,
                "commit": self.commit,
            },
            "end": self.end.value,
            "reason": self.reason,
            "message": self.message,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "seconds": self.seconds,
            "agent": dict(self.agent),
            "warehouse": self.warehouse,
            "store": self.store,
            "parallel": self.parallel,
            "sandbox": self.sandbox,
            "fingerprint": self.fingerprint.to_json(),
            "variants": {
                name: {
                    "outcomes": totals.outcomes(),
                    "total": totals.total,
                    "ungraded_set": totals.ungraded_set,
                    "ungraded_grader": totals.ungraded_grader,
                    "infra": totals.infra,
                    "accuracy": self.accuracy[name].value,
                    "accuracy_measured": self.accuracy[name].measured,
                }
                for name, totals in self.totals.items()
            },
            "gates": [gate.to_json() for gate in self.gates],
            "passed": self.passed,
            "notices": list(self.notices),
            "coverage": dict(self.coverage),
            "versions": dict(self.versions),
            "results": dict(self.results),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunRecord:
        """Read a stored `run.json` back."""
        variants = document["variants"]
        return cls(
            id=document["id"],
            set_name=document["set"]["name"],
            set_description=document["set"]["description"],
            format=document["set"]["format"],
            commit=document["set"]["commit"],
            end=RunEnd(document["end"]),
            reason=document["reason"],
            message=document["message"],
            started_at=document["started_at"],
            ended_at=document["ended_at"],
            seconds=float(document["seconds"]),
            agent=document["agent"],
            warehouse=document["warehouse"],
            store=document["store"],
            parallel=document["parallel"],
            sandbox=document["sandbox"],
            fingerprint=Fingerprint(**document["fingerprint"]),
            totals={
                name: Totals(
                    total=variant["total"],
                    ungraded_set=variant["ungraded_set"],
                    ungraded_grader=variant["ungraded_grader"],
                    infra=variant["infra"],
                    **variant["outcomes"],
                )
                for name, variant in variants.items()
            },
            accuracy={
                name: Accuracy(variant["accuracy"], variant["accuracy_measured"])
                for name, variant in variants.items()
            },
            gates=tuple(GateResult(**gate) for gate in document["gates"]),
            passed=document["passed"],
            notices=tuple(document["notices"]),
            coverage=document["coverage"],
            versions=document["versions"],
            results=document["results"],
        )
