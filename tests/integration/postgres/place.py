"""What the tests of PostgreSQL branches work with."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from proctor_grader.warehouse.base import (
    AdapterOptions,
    Branch,
    Mark,
    Relation,
    RelationKind,
    Warehouse,
)
from proctor_grader.warehouse.postgres import execute, open_adapter

if TYPE_CHECKING:
    from proctor_grader.warehouse.postgres.branching import PostgresAdapter
    from tests.services.postgres import PostgresBase, PostgresProcess

EXPIRES = datetime(2031, 2, 3, tzinfo=UTC)


class Place:
    """A base, adapters over it, and looks behind their backs."""

    def __init__(self, base: PostgresBase, process: PostgresProcess | None = None) -> None:
        self.base = base
        self.server = base.server
        self.process = process
        # of this test alone: parallel tests share the server
        token = secrets.token_hex(3)
        self.name = f"eval-{token}-t1-fan-out-f4a171"
        self.mark = Mark(f"inst-{token}", "run-1", EXPIRES)
        self.adapter = self.open_adapter()

    def open_adapter(self, url: str = "", **options: Any) -> PostgresAdapter:
        given = {"installation": self.mark.installation, "base_wait_seconds": 5.0} | options
        return open_adapter(url or self.base.url, AdapterOptions(branches_dir=Path(), **given))

    def create(self, name: str = "") -> Branch:
        return self.adapter.create(name or self.name, self.mark)

    def create_shared(self) -> Branch:
        return self.adapter.create_shared(self.name, self.mark)

    def grant(self, shared: Branch, suffix: str) -> Branch:
        return self.adapter.grant_read(shared, f"{self.name}-{suffix}", self.mark)

    def tell(self, dsn: str, *statements: str) -> list[str]:
        """The errors of statements run on a branch."""
        return [result.error for result in execute(dsn, statements)]

    def do(self, dsn: str, *statements: str) -> None:
        """Run statements on a branch, all of which work."""
        assert self.tell(dsn, *statements) == [""] * len(statements)

    def elsewhere(self, branch: Branch, database: str) -> str:
        """The agent's DSN with another database."""
        whole, _, _ = branch.agent_dsn.rpartition("/")
        return f"{whole}/{database}"

    @contextmanager
    def session(self, dsn: str) -> Iterator[psycopg.Connection[Any]]:
        """A session of a branch's role, autocommit."""
        with psycopg.connect(dsn, autocommit=True) as session:
            yield session

    def left(self) -> list[str]:
        """Databases and roles on the server that are called like the branch or its units."""
        with self.server.connect() as session:
            rows = session.execute(
                "SELECT datname FROM pg_database WHERE datname ^@ %(n)s"
                " UNION ALL SELECT rolname FROM pg_roles WHERE rolname ^@ %(n)s ORDER BY 1",
                {"n": self.name},
            ).fetchall()
        return [row[0] for row in rows]

    def asked(self, query: str, database: str = "postgres", **values: object) -> list[Any]:
        """First column of a superuser's query."""
        with self.server.connect(database) as session:
            return [row[0] for row in session.execute(query.encode(), values).fetchall()]


@dataclass(frozen=True, slots=True)
class Standing:
    """A branch that the tests of a module share; each leaves it as it was."""

    place: Place
    branch: Branch

    @contextmanager
    def reading(self, *statements: str) -> Iterator[Warehouse]:
        """The grader's view after the agent ran statements."""
        self.place.do(self.branch.agent_dsn, *statements)
        with self.place.adapter.open_reader(self.branch) as reader:
            yield reader


@contextmanager
def reading(place: Place, *statements: str) -> Iterator[Warehouse]:
    """The grader's view of a fresh branch on which the agent ran statements."""
    branch = place.create()
    place.do(branch.agent_dsn, *statements)
    with place.adapter.open_reader(branch) as reader:
        yield reader
    place.adapter.drop(place.name)


def table(name: str, schema: str = "public") -> Relation:
    return Relation(schema, name, RelationKind.TABLE)
