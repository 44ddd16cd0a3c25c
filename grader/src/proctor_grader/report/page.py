"""The report: a folder of pages that opens from disk, written one unit at a time.

Memory does not grow with the number of units: rows of the index lie in files until they are put
together, and only counts and durations are kept.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Self

from markupsafe import Markup

from proctor_grader.model.result import Outcome
from proctor_grader.report.pages import template, write_assets
from proctor_grader.report.summary import (
    FAILURES_FIRST,
    StageClock,
    facts_of,
    headline_of,
    layers_of,
    total_of,
)
from proctor_grader.report.task_page import Neighbour, load_unit, page_name, render_unit
from proctor_grader.report.unit_text import explanation, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from proctor_grader.model.result import UnitResult, Verdict
    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.task import Task, TaskId
    from proctor_grader.report.plots import Plot
    from proctor_grader.report.source import EvidenceSource
    from proctor_grader.report.summary import HistoryPoint
    from proctor_grader.report.task_page import UnitMaterial

INDEX = "index.html"
UNITS = "units"
READERS = 8
"""Threads that read evidence ahead; what they read of one unit is bounded, so all of it is."""

_CHUNK = 256 * 1024
_WHY_SHOWN = 240


def write_report(
    out: Path,
    *,
    record: RunRecord,
    tasks: Mapping[TaskId, Task],
    results: Callable[[], Iterator[UnitResult]],
    evidence: EvidenceSource,
    history: Sequence[HistoryPoint] = (),
    put_page: Callable[[str, bytes], object] | None = None,
) -> Path:
    """Write the report's folder, replacing pages of the same names.

    Args:
        out: folder, made if missing.
        record: of the finished run.
        tasks: as the run saw them; a unit whose task is missing is shown without it.
        results: gives every unit's result in force, in the order the units' pages are to have.
        evidence: where the units' pages are filled from.
        history: earlier runs of the set, oldest first, without this one.
        put_page: takes a unit's page by its name below `out`, in place of a file there.

    Returns:
        The path of `index.html`.
    """
    write_assets(out / "assets")
    if put_page is None:
        (out / UNITS).mkdir(exist_ok=True)
    several = any(task.title != task.id for task in tasks.values())
    with _Index(record, several_titles=several) as index:
        for material, previous, following in _with_neighbours(_loaded(results(), tasks, evidence)):
            result = material.result
            page = render_unit(material, record, previous=previous, following=following)
            name = f"{UNITS}/{page_name(result.unit)}"
            if put_page is None:
                (out / name).write_bytes(page.encode())
            else:
                put_page(name, page.encode())
            index.add(result, material.task)
        return index.write(out / INDEX, history)


def _loaded(
    results: Iterable[UnitResult], tasks: Mapping[TaskId, Task], evidence: EvidenceSource
) -> Iterator[UnitMaterial]:
    """Read units' evidence some ahead of the writing, and hand it over in order."""
    with ThreadPoolExecutor(READERS, thread_name_prefix="report") as readers:
        waiting: deque[Future[UnitMaterial]] = deque()
        for result in results:
            waiting.append(readers.submit(load_unit, result, tasks.get(result.task), evidence))
            if len(waiting) > READERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _with_neighbours(
    materials: Iterable[UnitMaterial],
) -> Iterator[tuple[UnitMaterial, Neighbour | None, Neighbour | None]]:
    before: Neighbour | None = None
    current: UnitMaterial | None = None
    for following in materials:
        if current is not None:
            yield current, before, _neighbour(following)
            before = _neighbour(current)
        current = following
    if current is not None:
        yield current, before, None


def _neighbour(material: UnitMaterial) -> Neighbour:
    return Neighbour(material.result.unit, material.result.task)


@dataclass(slots=True)
class _Index:
    """The first page in the making: rows by outcome in files, counts in memory."""

    record: RunRecord
    several_titles: bool
    verdicts: Counter[tuple[Verdict, Outcome]] = field(default_factory=Counter)
    clock: StageClock = field(default_factory=StageClock)
    _stack: ExitStack = field(default_factory=ExitStack)
    _rows: dict[Outcome, IO[str]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="proctor-report-")))
        for outcome in Outcome:
            file = (folder / outcome.value).open("w+", encoding="utf-8")
            self._rows[outcome] = self._stack.enter_context(file)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def add(self, result: UnitResult, task: Task | None) -> None:
        """Take in one unit."""
        self.verdicts[result.verdict, result.outcome] += 1
        self.clock.add(result)
        row = template("row.html.j2").render(
            result=result,
            task=task,
            page=page_name(result.unit),
            why=explanation(result),
            why_shown=_WHY_SHOWN,
            seconds=seconds_of(result),
            several_titles=self.several_titles,
            several_variants=len(self.record.totals) > 1,
        )
        self._rows[result.outcome].write(row)

    def write(self, path: Path, history: Sequence[HistoryPoint]) -> Path:
        """Put the page together."""
        record = self.record
        totals = record.totals
        context = {
            "root": "",
            "record": record,
            "headline": headline_of(record),
            "outcomes": [(outcome, total_of(totals, outcome)) for outcome in Outcome],
            "total": sum(each.total for each in totals.values()),
            "run_facts": facts_of(record),
            "layers": layers_of(record.coverage),
            "plots": self._plots(history),
            "rows": self._chunks(),
            "several_titles": self.several_titles,
            "several_variants": len(totals) > 1,
        }
        with path.open("w", encoding="utf-8") as page:
            page.writelines(template("index.html.j2").generate(context))
        return path

    def _plots(self, history: Sequence[HistoryPoint]) -> tuple[Plot, ...]:
        from proctor_grader.report.plots import draw_plots  # noqa: PLC0415 - a second, 100 MB

        return draw_plots(self.record, self.verdicts, self.clock.spreads(), history)

    def _chunks(self) -> Iterator[Markup]:
        for outcome in FAILURES_FIRST:
            file = self._rows[outcome]
            file.seek(0)
            while chunk := file.read(_CHUNK):
                yield Markup(chunk)  # noqa: S704 - rows come from their template
