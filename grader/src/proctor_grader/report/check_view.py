"""Pure: one item of a judgement as a page shows it; any criterion's items can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor_grader.model.result import Outcome
from proctor_grader.report.check_plot import CheckPlot, render_check_plot, scale_note
from proctor_grader.report.display import as_decimal, legible
from proctor_grader.report.unit_facts import named
from proctor_grader.report.unit_text import closest_value, tolerance_text

if TYPE_CHECKING:
    from markupsafe import Markup

    from proctor_grader.model.result import ItemResult

_OUTCOMES = {True: Outcome.PASSED, False: Outcome.FAILED, None: Outcome.UNGRADED}
_WORDS = {True: "passed", False: "failed", None: "not judged"}
_PLOTTED = frozenset({"value", "tolerance", "closest"})


@dataclass(frozen=True, slots=True)
class CheckView:
    """What is shown of one item.

    Attributes:
        outcome: gives the sign and the colour.
        facts: expected, got, tolerance and whatever else the item holds, by name.
        plot: None where there is no number to draw.
        note: what to know when reading the plot.
    """

    name: str
    outcome: Outcome
    word: str
    detail: str
    facts: tuple[tuple[str, str], ...]
    plot: Markup | None = None
    note: str = ""


def check_view(item: ItemResult) -> CheckView:
    """Return an item as it is shown: numbers with a plot, anything else by its data."""
    value, tolerance = as_decimal(item.data.get("value")), as_decimal(item.data.get("tolerance"))
    outcome, word = _OUTCOMES[item.passed], _WORDS[item.passed]
    if value is None or tolerance is None:
        return CheckView(item.name, outcome, word, item.detail, named(item.data))
    more = named({name: data for name, data in item.data.items() if name not in _PLOTTED})
    plot = CheckPlot(value, tolerance, closest_value(item.data), item.passed)
    return CheckView(
        name=item.name,
        outcome=outcome,
        word=word,
        detail="",
        facts=_number_facts(plot, item.data.get("closest")) + more,
        plot=render_check_plot(plot),
        note=scale_note(plot),
    )


def _number_facts(plot: CheckPlot, closest: Any) -> tuple[tuple[str, str], ...]:
    got = "no number in the answer" if plot.got is None else legible(plot.got)
    if plot.deviation:
        got += f" ({plot.deviation})"
    facts = [("Expected", legible(plot.value)), ("Got", got)]
    written = closest.get("text") if isinstance(closest, Mapping) else None
    if isinstance(written, str) and plot.got is not None and written != legible(plot.got):
        facts.append(("Written as", written))
    facts.append(("Tolerance", tolerance_text(plot.value, plot.tolerance)))
    if plot.low != plot.high:
        facts.append(("Allowed", f"{legible(plot.low)} to {legible(plot.high)}"))
    return tuple(facts)
