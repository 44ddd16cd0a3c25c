"""Opens a base itself, read-only: to see whether it opens, and for its fingerprint."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import duckdb

from proctor_grader.errors import QueryError, UserError
from proctor_grader.warehouse.duckdb import sqltext
from proctor_grader.warehouse.duckdb.basefile import check_file, path_of
from proctor_grader.warehouse.duckdb.faults import ENGINE_ERRORS, fault_of
from proctor_grader.warehouse.duckdb.instance import closed_connection
from proctor_grader.warehouse.duckdb.reading import DuckDBWarehouse

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def open_base_reader(url: str) -> Iterator[DuckDBWarehouse]:
    """Open a base itself in an instance of its own; nobody can write to it meanwhile.

    Raises:
        UserError: there is no such database, or somebody writes to it just now.
        WarehouseError: it can't be opened for want of memory, handles or rights.
    """
    with open_file(path_of(url)) as reader:
        yield reader


@contextmanager
def open_file(path: Path) -> Iterator[DuckDBWarehouse]:
    """Open a database file by its absolute path; as `open_base_reader`."""
    check_file(path)
    with TemporaryDirectory(prefix="proctor-base-", ignore_cleanup_errors=True) as folder:
        try:
            connection = closed_connection(Path(folder) / "spill", database=path)
        except ENGINE_ERRORS as error:
            fault = fault_of(error)
            if not isinstance(fault, QueryError):
                raise fault from error
            raise UserError(
                f"can't be opened by DuckDB {duckdb.__version__}: {fault.message}",
                where=str(path),
                remedy="if a newer DuckDB wrote it, upgrade the package 'duckdb' beside Proctor",
                reason="BaseInvalid",
            ) from error
        try:
            catalog = connection.execute(sqltext.ATTACHED_CATALOG).fetchall()[0][0]
            reader = DuckDBWarehouse(connection, catalog)
            try:
                yield reader
            finally:
                reader.close()
        finally:
            connection.close()


def check_base(path: Path) -> None:
    """Make sure that a base is there, opens, and is not being written to.

    Raises:
        UserError, WarehouseError: as `open_base_reader`.
    """
    with open_file(path):
        pass
