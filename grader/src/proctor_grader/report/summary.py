"""Pure: what the first page of a report says about a run, before it is laid out."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import Outcome
from proctor_grader.model.run import RunEnd
from proctor_grader.model.unit import Stage
from proctor_grader.report.display import count_of, duration, moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from proctor_grader.model.result import UnitResult
    from proctor_grader.model.run import GateResult, RunRecord, Totals
    from proctor_grader.model.unit import RunId

FAILURES_FIRST = (
    Outcome.FAILED,
    Outcome.ERROR,
    Outcome.CANCELLED,
    Outcome.UNGRADED,
    Outcome.PASSED,
)
_STAGES = {stage.value: index for index, stage in enumerate(Stage)}


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """An earlier run of the same set.

    Attributes:
        started_at: aware UTC, ISO 8601; points come oldest first.
        accuracy: percent by variant, None where nothing was to be graded.
    """

    run: RunId
    started_at: str
    accuracy: Mapping[str, Decimal | None]
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """How the run ended, in words.

    Attributes:
        outcome: whose colour and sign the headline has.
        why: sentences; empty for none.
    """

    outcome: Outcome
    text: str
    why: tuple[str, ...]


def headline_of(record: RunRecord) -> Headline:
    """Return passed or not passed and why."""
    stated = tuple(part for part in (record.message or record.reason,) if part)
    if record.end is RunEnd.CANCELLED:
        return Headline(Outcome.CANCELLED, "Cancelled", stated)
    if record.end is RunEnd.FAILED or record.passed is None:
        return Headline(Outcome.ERROR, "Could not be carried out", stated)
    if record.passed:
        return Headline(Outcome.PASSED, "Passed", ("Every gate holds.",))
    missed = tuple(gate_sentence(gate) for gate in record.gates if not gate.passed)
    return Headline(Outcome.FAILED, "Not passed", missed + stated)


def gate_sentence(gate: GateResult) -> str:
    """Return a gate in one sentence: `minAccuracy: got 75.00, wanted >= 80`."""
    return f"{gate.name}: got {gate.got}, wanted {gate.want}"


def total_of(totals: Mapping[str, Totals], outcome: Outcome) -> int:
    """Return the units of all variants with that outcome."""
    return sum(getattr(each, outcome.value) for each in totals.values())


@dataclass(frozen=True, slots=True)
class Spread:
    """Durations of one stage over many units, in seconds."""

    stage: str
    count: int
    total: float
    least: float
    lower: float
    median: float
    upper: float
    most: float


@dataclass(slots=True)
class StageClock:
    """Collects how long stages took: eight bytes per unit and stage."""

    _seconds: dict[str, array[float]] = field(default_factory=dict)

    def add(self, result: UnitResult) -> None:
        """Take in a unit's stages."""
        for name, record in result.stages.items():
            self._seconds.setdefault(name, array("d")).append(record.seconds)

    def spreads(self) -> tuple[Spread, ...]:
        """Return one spread per stage, in the order in which stages run."""
        names = sorted(self._seconds, key=lambda name: _STAGES.get(name, len(_STAGES)))
        return tuple(_spread(name, sorted(self._seconds[name])) for name in names)


def _spread(stage: str, values: Sequence[float]) -> Spread:
    lower, median, upper = (
        quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    )
    return Spread(stage, len(values), sum(values), values[0], lower, median, upper, values[-1])


def facts_of(record: RunRecord) -> list[tuple[str, str]]:
    """Return what a reader may want to know of the run, by name; the unknown is left out."""
    several = len(record.agent) > 1
    pairs = [
        ("Run", record.id),
        ("Eval set", f"{record.set_name} ({record.format})"),
        ("Commit", record.commit),
        *((f"Agent {name}" if several else "Agent", text) for name, text in record.agent.items()),
        ("Warehouse", record.warehouse or "none"),
        *_fingerprint_facts(record),
        ("Started", moment(record.started_at)),
        ("Ended", moment(record.ended_at)),
        ("Duration", duration(record.seconds)),
        ("In parallel", count_of(record.parallel, "unit")),
        ("Sandbox", record.sandbox),
        ("Store", record.store),
        *((f"Version of {name}", text) for name, text in sorted(record.versions.items())),
    ]
    return [(name, text) for name, text in pairs if text]


def _fingerprint_facts(record: RunRecord) -> list[tuple[str, str]]:
    mark = record.fingerprint
    found = mark.found or (f"not computed: {mark.reason}" if mark.reason else "not computed")
    if not mark.pinned:
        return [("Warehouse build", found)]
    agreed = "as the set expects" if mark.pinned == mark.found else f"the set expects {mark.pinned}"
    return [("Warehouse build", f"{found}, {agreed}")]


@dataclass(frozen=True, slots=True)
class LayerCoverage:
    """How many models of one layer are declared by tasks."""

    layer: str
    covered: int
    total: int


def layers_of(coverage: Mapping[str, Any]) -> tuple[LayerCoverage, ...]:
    """Return the coverage by layer, as far as the figures hold it."""
    by_layer = coverage.get("by_layer") or {}
    return tuple(
        LayerCoverage(str(layer), int(figures["covered"]), int(figures["total"]))
        for layer, figures in by_layer.items()
        if isinstance(figures, Mapping) and {"covered", "total"} <= set(figures)
    )
