"""Pure: what changed between two runs, task by task, and whether that can be chance.

A task's trials are put together first (trials of one task are not independent of each other);
then tasks that got better are held against tasks that got worse by an exact two-sided sign test.
With one trial per task this is McNemar's exact test. All arithmetic is on integers and fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader.model.result import UnitResult, Verdict
    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.task import TaskId

SIGNIFICANT = Fraction(1, 20)
"""A difference is shown when p is below it."""

_JUDGED = frozenset({Outcome.PASSED, Outcome.FAILED})
_SIX_DIGITS = Context(prec=6)


class Change(StrEnum):
    """How a task fared in run B beside run A."""

    FIXED = "fixed"
    BROKEN = "broken"
    SAME = "same"
    NOT_COMPARABLE = "not comparable"
    ONLY_A = "only in A"
    ONLY_B = "only in B"


@dataclass(frozen=True, slots=True)
class Side:
    """One task's trials in one run.

    Attributes:
        passed: of the judged ones (outcome passed or failed).
        judged: ungraded, error and cancelled trials say nothing about the agent.
        verdicts: by trial, as they came.
    """

    passed: int = 0
    judged: int = 0
    verdicts: tuple[Verdict, ...] = ()

    def plus(self, result: UnitResult) -> Side:
        """Return the side with one more trial."""
        return Side(
            passed=self.passed + (result.outcome is Outcome.PASSED),
            judged=self.judged + (result.outcome in _JUDGED),
            verdicts=(*self.verdicts, result.verdict),
        )

    @property
    def rate(self) -> Fraction | None:
        """Share of judged trials that passed, None without any."""
        return Fraction(self.passed, self.judged) if self.judged else None

    def told(self) -> str:
        """Return the side for people: the verdict, or how many trials passed."""
        if len(self.verdicts) == 1:
            return self.verdicts[0].value
        return f"{self.passed} of {len(self.verdicts)} passed"

    def to_json(self) -> dict[str, Any]:
        """Return the side as it stands in the diff's document."""
        return {
            "passed": self.passed,
            "judged": self.judged,
            "verdicts": [verdict.value for verdict in self.verdicts],
        }


@dataclass(frozen=True, slots=True)
class TaskChange:
    """One task in both runs; a side is None where the run has no such task.

    Attributes:
        variant: empty when the runs were compared across variants.
    """

    task: TaskId
    variant: str
    a: Side | None
    b: Side | None

    @property
    def step(self) -> Fraction | None:
        """By how much the share of judged trials that passed grew; None without both."""
        rate_a = None if self.a is None else self.a.rate
        rate_b = None if self.b is None else self.b.rate
        return None if rate_a is None or rate_b is None else rate_b - rate_a

    @property
    def change(self) -> Change:
        """Fixed and broken compare the shares of judged trials that passed."""
        if self.a is None:
            return Change.ONLY_B
        if self.b is None:
            return Change.ONLY_A
        if self.step is None:
            return Change.NOT_COMPARABLE
        if self.step == 0:
            return Change.SAME
        return Change.FIXED if self.step > 0 else Change.BROKEN

    def to_json(self) -> dict[str, Any]:
        """Return the change as it stands in the diff's document."""
        return {
            "task": self.task,
            "variant": self.variant,
            "change": self.change.value,
            "a": None if self.a is None else self.a.to_json(),
            "b": None if self.b is None else self.b.to_json(),
        }


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Two runs beside each other.

    Attributes:
        tasks: in the order of run A, then those only B has.
        across_variants: each run had one variant, of different names, and they were compared.
    """

    tasks: tuple[TaskChange, ...]
    across_variants: bool = False

    def count(self, change: Change) -> int:
        """Number of tasks with that change."""
        return sum(task.change is change for task in self.tasks)

    @property
    def p_value(self) -> Fraction:
        """Chance of a split at least as uneven if neither run were better; 1 without changes."""
        return sign_test(self.count(Change.FIXED), self.count(Change.BROKEN))

    @property
    def difference_shown(self) -> bool:
        """Whether p is below 0.05."""
        return self.p_value < SIGNIFICANT

    @property
    def effect_points(self) -> Fraction | None:
        """Pass rate of B minus that of A over the comparable tasks, in percentage points.

        Every task weighs the same, whatever its number of trials. None without such tasks.
        """
        steps = [step for task in self.tasks if (step := task.step) is not None]
        return 100 * sum(steps, Fraction(0)) / len(steps) if steps else None

    @property
    def conclusion(self) -> str:
        """One sentence for people."""
        fixed, broken = self.count(Change.FIXED), self.count(Change.BROKEN)
        effect = self.effect_points
        if effect is None:
            return "no difference shown: no task was judged in both runs"
        facts = f"{fixed} fixed, {broken} broken, p = {p_text(self.p_value)}"
        if self.difference_shown:
            word = "more" if fixed > broken else "fewer"
            return f"difference shown: B passes {points_text(abs(effect))} points {word} ({facts})"
        changed = fixed + broken
        hint = ""
        if changed and sign_test(changed, 0) >= SIGNIFICANT:
            hint = f"; with {changed} changed it can't be shown, whichever way they go"
        return f"no difference shown ({facts}{hint})"

    def to_json(self) -> dict[str, Any]:
        """Return the whole diff as a JSON document."""
        effect = self.effect_points
        return {
            "counts": {change.name.lower(): self.count(change) for change in Change},
            "p_value": as_decimal(self.p_value),
            "difference_shown": self.difference_shown,
            "effect_points": None if effect is None else as_decimal(effect),
            "across_variants": self.across_variants,
            "conclusion": self.conclusion,
            "tasks": [task.to_json() for task in self.tasks],
        }


def diff_runs(a_results: Iterable[UnitResult], b_results: Iterable[UnitResult]) -> RunDiff:
    """Compare two runs' results; each is read once, and only its verdicts are kept.

    Units are matched by task and variant. When each run has a single variant their names don't
    matter: that is how two agents in two runs are compared.
    """
    sides_a, sides_b = _sides(a_results), _sides(b_results)
    variants_a = {variant for _, variant in sides_a}
    variants_b = {variant for _, variant in sides_b}
    across = len(variants_a) == 1 == len(variants_b) and variants_a != variants_b
    if across:
        sides_a = {(task, ""): side for (task, _), side in sides_a.items()}
        sides_b = {(task, ""): side for (task, _), side in sides_b.items()}
    keys = dict.fromkeys([*sides_a, *sides_b])
    return RunDiff(
        tuple(
            TaskChange(task, variant, sides_a.get((task, variant)), sides_b.get((task, variant)))
            for task, variant in keys
        ),
        across_variants=across,
    )


def _sides(results: Iterable[UnitResult]) -> dict[tuple[TaskId, str], Side]:
    sides: dict[tuple[TaskId, str], Side] = {}
    for result in results:
        key = result.task, result.variant
        sides[key] = sides.get(key, Side()).plus(result)
    return sides


def sign_test(better: int, worse: int) -> Fraction:
    """Return the exact two-sided p of a split of `better` to `worse` under even odds.

    Source: McNemar's test in its exact (binomial) form; twice the smaller tail, at most 1.
    """
    changed = better + worse
    tail = term = 1
    for chosen in range(1, min(better, worse) + 1):
        term = term * (changed - chosen + 1) // chosen  # comb(changed, chosen), step by step
        tail += term
    return min(Fraction(1), Fraction(2 * tail, 2**changed))


def as_decimal(value: Fraction) -> Decimal:
    """Return a fraction with six significant digits."""
    return _SIX_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def p_text(value: Fraction) -> str:
    """Return a p for people: four decimals, `< 0.0001` below."""
    if value < Fraction(1, 10_000):
        return "< 0.0001"
    return f"{as_decimal(value):.4f}"


def points_text(value: Fraction) -> str:
    """Return percentage points with two decimals, half up as accuracies are."""
    sign = "-" if value < 0 else ""
    hundredths = (2 * 100 * abs(value).numerator + value.denominator) // (2 * value.denominator)
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}"


def conditions_changed(a: RunRecord, b: RunRecord) -> tuple[str, ...]:
    """Return what else differs between two runs, so that a difference is not put down to agents.

    Returns:
        Sentences like `warehouse build: fp-1 / fp-2`; empty when set, build and agents agree.
    """
    pairs = {
        "eval set": (f"{a.set_name} ({a.format})", f"{b.set_name} ({b.format})"),
        "commit": (a.commit or "unknown", b.commit or "unknown"),
        "warehouse": (a.warehouse or "none", b.warehouse or "none"),
        "warehouse build": (a.fingerprint.found or "unknown", b.fingerprint.found or "unknown"),
        "agent": (_agents(a), _agents(b)),
        "sandbox": (a.sandbox or "none", b.sandbox or "none"),
        "versions": (_listed(a.versions), _listed(b.versions)),
    }
    return tuple(f"{name}: {old} / {new}" for name, (old, new) in pairs.items() if old != new)


def _agents(record: RunRecord) -> str:
    return ", ".join(
        text if len(record.agent) == 1 else f"{variant}: {text}"
        for variant, text in record.agent.items()
    )


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
