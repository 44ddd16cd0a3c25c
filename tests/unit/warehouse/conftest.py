"""A DuckDB base of each test's own, and an adapter over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from proctor_grader.warehouse.base import AdapterOptions, Branch
from proctor_grader.warehouse.duckdb import DuckDBAdapter, DuckDBWarehouse, open_adapter
from tests.unit.warehouse.duckdbfile import MARK, write_database


class Shop:
    """A base called `shop` and its adapter."""

    def __init__(self, folder: Path) -> None:
        self.base = write_database(folder / "base" / "shop.duckdb")
        self.options = AdapterOptions("inst-a", folder / "branches", base_wait_seconds=0.0)
        self.adapter: DuckDBAdapter = open_adapter(str(self.base), self.options)

    def branch(self, *statements: str, name: str = "eval-1") -> Branch:
        """A branch on which an agent has run statements."""
        branch = self.adapter.create(name, MARK)
        write_database(Path(branch.agent_dsn), *statements)
        return branch

    @contextmanager
    def reader(self, *statements: str) -> Iterator[DuckDBWarehouse]:
        with self.adapter.open_reader(self.branch(*statements)) as reader:
            yield reader


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.adapter.close()


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened
