"""The build fingerprint: one digest over all tables of a warehouse, whatever its engine.

Source: eval-json format, section 9.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from proctor_grader.warehouse.table import open_base_reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proctor_grader.warehouse.base import TableShape

FIRST_LINES = {
    "postgres": "sp-eval-fingerprint-v2",
    "duckdb": "proctor-fingerprint-duckdb-v1",
}


def fingerprint_of(shapes: Iterable[TableShape], engine: str) -> str:
    """Return the digest of the tables' names, exact row counts and columns.

    Args:
        shapes: base tables in any order.
        engine: a key of `FIRST_LINES`.
    """
    digest = sha256()
    for line in _lines(shapes, engine):
        digest.update(f"{line}\n".encode())
    return f"fp-{digest.hexdigest()[:32]}"


def _lines(shapes: Iterable[TableShape], engine: str) -> Iterator[str]:
    yield FIRST_LINES[engine]
    for shape in sorted(shapes, key=lambda each: (each.schema.encode(), each.name.encode())):
        yield f"{shape.schema}.{shape.name}:{shape.row_count}"
        for column in sorted(shape.columns, key=lambda each: each.ordinal):
            nullable = "YES" if column.nullable else "NO"
            yield f"  {column.ordinal}:{column.name}:{column.type}:{nullable}"


def build_fingerprint(url: str) -> str:
    """Compute the build fingerprint of a warehouse that nobody writes to just now.

    Args:
        url: `duckdb:///relative`, `duckdb:////absolute`, a path of a `.duckdb` file, or
            `postgresql://user:password@host/database`.

    Raises:
        UserError: the URL is none of these, or there is no such warehouse.
        WarehouseError: it can't be reached or read.
        QueryError: one of its tables can't be read.
    """
    with open_base_reader(url) as warehouse:
        return fingerprint_of(warehouse.shapes(), warehouse.engine)
