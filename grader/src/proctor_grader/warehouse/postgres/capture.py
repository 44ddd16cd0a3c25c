"""Rows on their way into a capture file: COPY as CSV, in pieces, into DuckDB. Constant memory.

CSV with every value quoted and NULL unquoted keeps NULL and '' apart and survives the trip byte
for byte; it is also the fastest way that needs no further library.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.warehouse.base import CaptureTooLarge
from proctor_grader.warehouse.postgres.faults import DISK_FULL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import sql

    from proctor_grader.warehouse.postgres.session import Session

_PIECE_BYTES = 32 * 1024 * 1024
_SMALLEST_PIECE_BYTES = 1024 * 1024
_LONGEST_LINE_BYTES = 2 * 1024 * 1024
_SETTINGS: dict[str, Any] = {
    "threads": 1,
    "memory_limit": "512MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_LOAD = """
INSERT INTO capture SELECT * FROM read_csv(?, auto_detect = false, header = false, columns = {{{}}},
    delim = ',', quote = '"', escape = '"', nullstr = '\\N', allow_quoted_nulls = false,
    new_line = '\\n', strict_mode = true, null_padding = false, parallel = false,
    max_line_size = {}, buffer_size = {})
"""


def write_capture(
    session: Session, copy: sql.Composed, path: Path, columns: Sequence[str], max_bytes: int
) -> int:
    """Write the rows that a COPY gives to a new DuckDB file with one table `capture`.

    Args:
        session: in a transaction.
        copy: as `query.copy_rows` writes it.
        path: must not exist; after an error it does not exist either.
        columns: names; of those that differ in case only, which DuckDB takes as one, the later
            ones get a number.
        max_bytes: the file may not be larger. It is checked after every piece, so it may be
            passed by one piece before it is removed.

    Returns:
        The number of rows.

    Raises:
        CaptureTooLarge: there is no file then.
        WarehouseError: there is no room on the disk.
    """
    if not columns:
        raise QueryError("a table without columns can't be captured")
    if path.exists():
        raise FileExistsError(path)
    try:
        with tempfile.TemporaryDirectory(prefix=".capture-", dir=path.parent) as folder:
            piece = Path(folder) / "piece.csv"
            with duckdb.connect(str(path), config=_SETTINGS) as database:
                capture = _Capture(database, path, _distinct(columns), max_bytes)
                rows = _load_pieces(session, copy, piece, capture)
        capture.check_size()
    except BaseException as error:
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
        if isinstance(error, OSError | duckdb.Error):
            raise WarehouseError(
                f"a capture can't be written: {error}", reason=DISK_FULL
            ) from error
        raise
    return rows


@dataclass(frozen=True, slots=True)
class _Capture:
    database: duckdb.DuckDBPyConnection
    path: Path
    names: tuple[str, ...]
    max_bytes: int

    def create(self) -> None:
        columns = ", ".join(f"{_quoted(name, chr(34))} VARCHAR" for name in self.names)
        self.database.execute(f"CREATE TABLE capture ({columns})")

    def load(self, piece: Path, longest_line: int) -> None:
        columns = ", ".join(f"{_quoted(name, chr(39))}: 'VARCHAR'" for name in self.names)
        line = max(longest_line, _LONGEST_LINE_BYTES)
        self.database.execute(_LOAD.format(columns, line, 2 * line), [str(piece)])
        self.database.execute("CHECKPOINT")
        self.check_size()

    def check_size(self) -> None:
        if self.path.stat().st_size > self.max_bytes:
            raise CaptureTooLarge(self.max_bytes)


def _load_pieces(session: Session, copy: sql.Composed, piece: Path, capture: _Capture) -> int:
    """Load all rows, never holding more than one piece of them outside the capture."""
    capture.create()
    full = max(_SMALLEST_PIECE_BYTES, min(_PIECE_BYTES, capture.max_bytes))
    rows = 0
    with session.cursor() as cursor, cursor.copy(copy) as stream:
        lines = iter(stream)
        more = True
        while more:
            size = longest = 0
            more = False
            with piece.open("wb") as out:
                for line in lines:  # the server sends one row at a time
                    out.write(line)
                    rows += 1
                    size += len(line)
                    longest = max(longest, len(line))
                    if size >= full:
                        more = True
                        break
            if size:
                capture.load(piece, longest)
    return rows


def _distinct(columns: Sequence[str]) -> tuple[str, ...]:
    taken: set[str] = {name.lower() for name in columns}
    seen: set[str] = set()
    names = []
    for name in columns:
        free, number = name, 2
        if name.lower() in seen:
            while (free := f"{name}_{number}").lower() in taken:
                number += 1
            taken.add(free.lower())
        seen.add(name.lower())
        names.append(free)
    return tuple(names)


def _quoted(name: str, mark: str) -> str:
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"
