"""PostgreSQL keeps the contract of every engine, on a real server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proctor_grader.warehouse.base import AdapterOptions, BranchAdapter, StatementResult
from proctor_grader.warehouse.postgres import execute, open_adapter
from tests.contract.warehouse import BranchAdapterContract, Engine, WarehouseContract

if TYPE_CHECKING:
    from tests.services.postgres import PostgresBase


class PostgresEngine(Engine):
    default_schema = "public"

    def __init__(self, base: PostgresBase) -> None:
        self._base = base
        self.types = {
            "integer": "integer",
            "varchar": "character varying",
            "numeric": "numeric",
            "double": "double precision",
        }

    def write_base(self, *statements: str) -> None:
        self._base.execute(*statements)

    def open_adapter(self, installation: str) -> BranchAdapter:
        return open_adapter(self._base.url, AdapterOptions(installation, Path("unused")))

    def execute(self, dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]:
        return execute(dsn, statements)


@pytest.fixture
def engine(postgres_base: PostgresBase) -> Engine:
    return PostgresEngine(postgres_base)


class TestPostgresReader(WarehouseContract):
    pass


class TestPostgresAdapter(BranchAdapterContract):
    pass
