"""The DuckDB engine against the contract of every engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pytest

from proctor_grader.warehouse.base import AdapterOptions, BranchAdapter, StatementResult
from proctor_grader.warehouse.table import execute, open_adapter
from tests.contract.warehouse import BranchAdapterContract, Engine, WarehouseContract


class DuckDBEngine(Engine):
    default_schema = "main"

    def __init__(self, folder: Path) -> None:
        self.types = {
            "integer": "INTEGER",
            "varchar": "VARCHAR",
            "numeric": "DECIMAL(12,2)",
            "double": "DOUBLE",
        }
        self.base = folder / "base" / "shop.duckdb"
        self.base.parent.mkdir()
        self.branches = folder / "branches"
        self.opened: list[BranchAdapter] = []
        self.write_base()

    def write_base(self, *statements: str) -> None:
        with duckdb.connect(str(self.base)) as connection:
            for statement in statements:
                connection.execute(statement)

    def open_adapter(self, installation: str = "inst-a") -> BranchAdapter:
        adapter = open_adapter(
            f"duckdb:///{self.base}", AdapterOptions(installation, self.branches)
        )
        self.opened.append(adapter)
        return adapter

    def execute(self, dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]:
        return execute(dsn, statements)


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(tmp_path_factory.mktemp("engine"))
    yield made
    for adapter in made.opened:
        adapter.close()
    left = [path for path in made.branches.rglob("*") if path.name != ".readers"]
    assert left == []


class TestDuckDBReader(WarehouseContract):
    pass


class TestDuckDBAdapter(BranchAdapterContract):
    pass
