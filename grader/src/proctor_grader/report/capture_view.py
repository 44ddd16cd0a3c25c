"""Pure: what was captured of a table, as a page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor_grader.jsontext import dump_json
from proctor_grader.report.display import count_of, cut, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proctor_grader.report.table import CaptureRows

_NOTES = ("refused", "truncated", "error")
_COLUMNS_SHOWN = 60
CELL_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One column's fingerprint; what was not taken is empty."""

    name: str
    type: str = ""
    nulls: str = ""
    sum: str = ""


@dataclass(frozen=True, slots=True)
class CaptureView:
    """One table.

    Attributes:
        facts: sentences: how many rows, whether the grain holds, what was refused.
        head: names of the shown rows' columns.
        rows: None for NULL.
        more: how many rows or columns are not shown, in words; empty for none.
    """

    table: str
    exists: bool
    facts: tuple[str, ...] = ()
    columns: tuple[ColumnView, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    more: str = ""


def capture_view(table: str, summary: Any, rows: CaptureRows | None) -> CaptureView:
    """Return a capture as it is shown, whatever its summary holds."""
    if not isinstance(summary, Mapping):
        return CaptureView(table, exists=False, facts=(_text(summary),))
    if summary.get("exists") is False:
        return CaptureView(table, exists=False, facts=("There is no such table on the branch.",))
    facts = tuple(_facts(summary))
    if rows is not None and rows.note:
        facts += (rows.note,)
    return CaptureView(
        table=table,
        exists=True,
        facts=facts,
        columns=tuple(_columns(summary.get("columns"))),
        head=() if rows is None else rows.columns[:_COLUMNS_SHOWN],
        rows=() if rows is None else tuple(_shown_row(row) for row in rows.rows),
        more="" if rows is None else _more(rows),
    )


def _facts(summary: Mapping[str, Any]) -> Iterator[str]:
    count = summary.get("row_count")
    if isinstance(count, int):
        yield count_of(count, "row")
    grain = summary.get("grain")
    if isinstance(grain, Mapping):
        key = grain.get("key")
        names = ", ".join(map(str, key)) if isinstance(key, (list, tuple)) else _text(key)
        unique = "identifies" if grain.get("unique") else "does not identify"
        yield f"({names}) {unique} a row: {_text(grain.get('distinct'))} distinct"
    if summary.get("sample_clamped"):
        yield "fewer sample rows were kept than the set asks for"
    for name in _NOTES:
        if summary.get(name):
            yield _text(summary[name])


def _columns(columns: Any) -> Iterator[ColumnView]:
    named: list[tuple[Any, Any]] = []
    if isinstance(columns, Mapping):
        named = list(columns.items())
    elif isinstance(columns, (list, tuple)):
        named = [(each.get("name"), each) for each in columns if isinstance(each, Mapping)]
    for name, about in named:
        if isinstance(about, Mapping):
            facts = {
                key: "" if about.get(key) is None else _text(about[key])
                for key in ("type", "nulls", "sum")
            }
            yield ColumnView(str(name), **facts)
        else:
            yield ColumnView(str(name), _text(about))


def _text(value: Any) -> str:
    return excerpt(value if isinstance(value, str) else dump_json(value), CELL_SHOWN)


def _shown_row(row: tuple[str | None, ...]) -> tuple[str | None, ...]:
    return tuple(
        None if value is None else cut(value, CELL_SHOWN) for value in row[:_COLUMNS_SHOWN]
    )


def _more(rows: CaptureRows) -> str:
    parts = []
    if rows.total > len(rows.rows):
        parts.append(count_of(rows.total - len(rows.rows), "more row"))
    if len(rows.columns) > _COLUMNS_SHOWN:
        parts.append(count_of(len(rows.columns) - _COLUMNS_SHOWN, "more column"))
    return f"{' and '.join(parts)} not shown" if parts else ""
