"""The DuckDB engine: a warehouse is a file, a branch is a copy of it in a folder of its own."""

from proctor_grader.warehouse.duckdb.branching import (
    DuckDBAdapter,
    open_adapter,
    open_leftovers,
)
from proctor_grader.warehouse.duckdb.opening import open_base_reader, open_file
from proctor_grader.warehouse.duckdb.reading import DuckDBWarehouse
from proctor_grader.warehouse.duckdb.running import execute

__all__ = [
    "DuckDBAdapter",
    "DuckDBWarehouse",
    "execute",
    "open_adapter",
    "open_base_reader",
    "open_file",
    "open_leftovers",
]
