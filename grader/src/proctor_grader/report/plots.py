"""The summary plots: altair describes, vl-convert draws, both without a network.

Importing the two costs about a second and 100 MB, so whoever needs this module imports it late.
Colours come out as CSS variables, so that one drawing serves light and dark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import altair as alt
import vl_convert
from markupsafe import Markup, escape

from proctor_grader.model.result import Outcome, Verdict
from proctor_grader.report.display import count_of, duration, moment, one_line, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from proctor_grader.model.run import RunRecord
    from proctor_grader.report.summary import HistoryPoint, Spread

_WIDTH = 380
_AXIS_HEIGHT = 44
_FIT = alt.AutoSizeParams(type="fit", contains="padding")
"""All plots are equally wide, axes included, so that their letters are equally large."""

_LEAST_SECONDS = 0.001
_LABEL_SHOWN = 28
_RUNS_SHOWN = 60

# Stand-ins that no plot has by chance, each replaced by the variable that the style sheet sets.
_TEXT, _GRID, _AXIS, _BAR = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
_OUTCOME_COLOURS = {
    Outcome.PASSED: "#0a0b11",
    Outcome.FAILED: "#0a0b12",
    Outcome.UNGRADED: "#0a0b13",
    Outcome.ERROR: "#0a0b14",
    Outcome.CANCELLED: "#0a0b15",
}
_SERIES = tuple(f"#0a0b2{number}" for number in range(6))
_VARIABLES = {
    _TEXT: "var(--text)",
    _GRID: "var(--line)",
    _AXIS: "var(--muted)",
    _BAR: "var(--bar)",
    **{colour: f"var(--{outcome.value})" for outcome, colour in _OUTCOME_COLOURS.items()},
    **{colour: f"var(--series-{number})" for number, colour in enumerate(_SERIES)},
}
_COLOUR = re.compile(r'"(#0a0b[0-9a-f]{2})"')
_SPOKEN = re.compile(r'\s(?:role|aria-[a-z]+)="[^"]*"')
_ROOT = re.compile(r"<svg [^>]*?(width=\"[\d.]+\" height=\"[\d.]+\" viewBox=\"[^\"]+\")[^>]*>")


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with its words and its numbers.

    Attributes:
        id: of the figure on its page.
        description: the point of the plot in a sentence.
        head: of the table that says the same; likewise `rows`.
    """

    id: str
    title: str
    description: str
    svg: Markup
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def draw_plots(
    record: RunRecord,
    verdicts: Mapping[tuple[Verdict, Outcome], int],
    spreads: Sequence[Spread],
    history: Sequence[HistoryPoint],
) -> tuple[Plot, ...]:
    """Draw what there is to draw; `history` is oldest first and does not hold this run."""
    plots = [
        _outcome_plot(record, verdicts) if sum(verdicts.values()) else None,
        _duration_plot(spreads) if spreads else None,
        _history_plot(record, history[-_RUNS_SHOWN:]) if history else None,
    ]
    return tuple(plot for plot in plots if plot is not None)


def _outcome_plot(record: RunRecord, verdicts: Mapping[tuple[Verdict, Outcome], int]) -> Plot:
    if len(record.totals) > 1:
        return _variants_plot(record)
    counted = [
        (_verdict_label(verdict, outcome), _OUTCOME_COLOURS[outcome], verdicts[verdict, outcome])
        for verdict in Verdict
        for outcome in Outcome
        if verdicts.get((verdict, outcome))
    ]
    values = [{"verdict": name, "units": n, "colour": colour} for name, colour, n in counted]
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y("verdict:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False)),
        x=alt.X("units:Q", title="units", axis=_whole_numbers(verdicts.values())),
    )
    bars = base.mark_bar(cornerRadiusEnd=2, height=18).encode(
        color=alt.Color("colour:N", scale=None, legend=None)
    )
    labels = base.mark_text(align="left", dx=5, fontSize=12, color=_TEXT).encode(text="units:Q")
    total = sum(verdicts.values())
    top, _, most = max(counted, key=lambda each: each[2])
    return Plot(
        id="plot-outcomes",
        title="Verdicts",
        description=f"{count_of(total, 'unit')} by verdict; most are {top} ({most:,}).",
        svg=_svg(bars + labels, len(values) * 30, "Units by verdict"),
        head=("Verdict", "Units"),
        rows=tuple((name, f"{count:,}") for name, _, count in counted),
    )


def _verdict_label(verdict: Verdict, outcome: Outcome) -> str:
    """An ERROR that the agent caused counts as failed, so it stands apart from the others."""
    if verdict is Verdict.ERROR and outcome is Outcome.FAILED:
        return f"{verdict.value} by the agent"
    return verdict.value


def _variants_plot(record: RunRecord) -> Plot:
    names = [outcome.value for outcome in Outcome]
    values = [
        {"variant": _label(variant), "outcome": name, "units": count, "order": order}
        for variant, totals in record.totals.items()
        for order, (name, count) in enumerate(totals.outcomes().items())
    ]
    colours = alt.Scale(domain=names, range=list(_OUTCOME_COLOURS.values()))
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(height=18)
        .encode(
            y=alt.Y("variant:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False)),
            x=alt.X("units:Q", title="units", axis=_whole_numbers([_most(record)])),
            color=alt.Color(
                "outcome:N", scale=colours, legend=alt.Legend(orient="top", title=None)
            ),
            order="order:Q",
        )
    )
    return Plot(
        id="plot-outcomes",
        title="Outcomes by variant",
        description=f"Units of {count_of(len(record.totals), 'variant')} by outcome.",
        svg=_svg(bars, len(record.totals) * 30, "Units by outcome for each variant"),
        head=("Variant", *names),
        rows=tuple(
            (shown(variant), *(f"{count:,}" for count in totals.outcomes().values()))
            for variant, totals in record.totals.items()
        ),
    )


def _most(record: RunRecord) -> int:
    return max(totals.total for totals in record.totals.values())


def _duration_plot(spreads: Sequence[Spread]) -> Plot:
    names = ("least", "lower", "median", "upper", "most")
    values = [
        {"stage": _label(spread.stage)}
        | {name: max(getattr(spread, name), _LEAST_SECONDS) for name in names}
        for spread in spreads
    ]
    seconds = alt.Axis(
        labelExpr="datum.value < 1 ? (datum.value * 1000) + ' ms' : datum.value + ' s'",
        values=_decades(values),
        title="duration, logarithmic",
        labelOverlap="greedy",
        labelSeparation=8,
    )
    scale = alt.Scale(type="log", domainMin=_decades(values)[0], domainMax=_decades(values)[-1])
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y("stage:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False))
    )
    whisker = base.mark_rule(color=_AXIS).encode(
        x=alt.X("least:Q", scale=scale, axis=seconds), x2="most:Q"
    )
    box = base.mark_bar(height=14, color=_BAR, cornerRadius=2).encode(x="lower:Q", x2="upper:Q")
    middle = base.mark_tick(color=_TEXT, thickness=3, height=20).encode(x="median:Q")
    longest = max(spreads, key=lambda spread: spread.total)
    return Plot(
        id="plot-durations",
        title="Duration by stage",
        description=(
            f"Bar: middle half of the units, mark: median, line: shortest to longest. Most time "
            f"went into {longest.stage} ({duration(longest.total)} in all)."
        ),
        svg=_svg(whisker + box + middle, len(values) * 30, "Durations of stages"),
        head=("Stage", "Units", "Shortest", "Median", "Longest", "In all"),
        rows=tuple(
            (
                spread.stage,
                f"{spread.count:,}",
                *(duration(s) for s in (spread.least, spread.median, spread.most, spread.total)),
            )
            for spread in spreads
        ),
    )


def _decades(values: Sequence[Mapping[str, Any]]) -> list[float]:
    """Powers of ten around all values, two at least."""
    low, high = min(v["least"] for v in values), max(v["most"] for v in values)
    marks = [10.0**power for power in range(-3, 7)]
    first = max(index for index, mark in enumerate(marks) if mark <= low or index == 0)
    last = next((index for index, mark in enumerate(marks) if mark >= high), len(marks) - 1)
    return marks[first : max(last, first + 1) + 1]


def _history_plot(record: RunRecord, history: Sequence[HistoryPoint]) -> Plot | None:
    runs = [(point.started_at, point.accuracy, point.run) for point in history]
    now = {variant: accuracy.value for variant, accuracy in record.accuracy.items()}
    runs.append((record.started_at, now, record.id))
    values = list(_points(runs))
    variants = list(dict.fromkeys(variant for _, accuracy, _ in runs for variant in accuracy))
    labels = [_label(variant) for variant in variants]
    if len({value["run"] for value in values}) < 2:
        return None
    axis = alt.Axis(labelExpr="split(datum.value, '|')[1]", labelAngle=-35, labelOverlap="greedy")
    scale = alt.Scale(domain=labels, range=[_SERIES[i % 6] for i, _ in enumerate(labels)])
    legend = alt.Legend(orient="top", title=None) if len(variants) > 1 else None
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X("run:O", sort=None, title=None, axis=axis),
        y=alt.Y("accuracy:Q", title="accuracy, %", scale=alt.Scale(domain=[0, 100])),
        color=alt.Color("variant:N", scale=scale, legend=legend),
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("variant:N", scale=alt.Scale(domain=labels), legend=legend)
    )
    chart: Any = base.mark_line(strokeWidth=2) + points
    least = _least_accuracy(record)
    if least is not None:
        wanted = alt.Chart(alt.InlineData(values=[{"least": float(least)}]))
        chart += wanted.mark_rule(strokeDash=[5, 4], color=_AXIS).encode(y="least:Q")
    asked = "" if least is None else f" Dashed: the {least} % that this run had to reach."
    return Plot(
        id="plot-history",
        title="Accuracy over runs",
        description=f"This run and {count_of(len(history), 'earlier run')} of the set.{asked}",
        svg=_svg(chart, 150, "Accuracy over the runs of this set"),
        head=("Run", "Started", *(variants if len(variants) > 1 else ("Accuracy",))),
        rows=tuple(
            (shown(run), moment(started_at), *(_percent(accuracy.get(v)) for v in variants))
            for started_at, accuracy, run in reversed(runs)
        ),
    )


def _points(
    runs: Sequence[tuple[str, Mapping[str, Decimal | None], str]],
) -> Iterator[dict[str, Any]]:
    for number, (started_at, accuracy, _) in enumerate(runs):
        for variant, value in accuracy.items():
            if value is not None:
                name = f"{number:04d}|{moment(started_at)[5:16]}"
                yield {"run": name, "variant": _label(variant), "accuracy": float(value)}


def _least_accuracy(record: RunRecord) -> Decimal | None:
    wanted = (gate.want for gate in record.gates if gate.name == "minAccuracy")
    return next((Decimal(want.removeprefix(">= ")) for want in wanted), None)


def _percent(value: Decimal | None) -> str:
    return "n/a" if value is None else f"{value} %"


def _label(text: str) -> str:
    return str(one_line(text, _LABEL_SHOWN))


def _whole_numbers(counts: Any) -> Any:
    return alt.Axis(tickMinStep=1, format=",d", tickCount=min(max(counts), 6))


def _svg(chart: Any, height: int, label: str) -> Markup:
    """Draw a chart; only its shapes are kept: words for screen readers are the page's own."""
    drawn = vl_convert.vegalite_to_svg(
        chart.properties(width=_WIDTH, height=height + _AXIS_HEIGHT, autosize=_FIT)
        .configure(
            background="transparent",
            padding={"left": 16, "right": 12, "top": 6, "bottom": 4},
            font="sans-serif",
            view=alt.ViewConfig(stroke=None),
        )
        .configure_axis(
            labelColor=_TEXT,
            titleColor=_TEXT,
            gridColor=_GRID,
            domainColor=_AXIS,
            tickColor=_AXIS,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=220,
        )
        .configure_legend(labelColor=_TEXT, labelFontSize=12)
        .to_dict()
    )
    plain = _SPOKEN.sub("", str(drawn))
    coloured = _COLOUR.sub(lambda found: f'"{_VARIABLES[found[1]]}"', plain)
    named = _ROOT.sub(
        rf'<svg class="plot" role="img" aria-label="{escape(label)}" \1>', coloured, count=1
    )
    return Markup(named)  # noqa: S704 - vl-convert escapes every text; nothing else is foreign
