"""The two protocols every engine implements, and the values they speak in.

Nothing here knows an engine. Errors: `WarehouseError` when the warehouse or Proctor's own role
is at fault, `QueryError` when what stands on the branch is, `BranchError` when the base or the
admin's rights do not allow a branch at all.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

QUERY_TIMEOUT_SECONDS = 300.0


class RelationKind(StrEnum):
    """What a name on a branch stands for."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized_view"
    FOREIGN_TABLE = "foreign_table"


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view, named exactly as the engine spells it.

    Attributes:
        owner: role that owns it; empty where the engine has none.
        is_default_schema: an unqualified name would find it here.
    """

    schema: str
    name: str
    kind: RelationKind
    owner: str = ""
    is_default_schema: bool = False

    def __str__(self) -> str:
        """Return `schema.name` for people."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column as `information_schema.columns` spells it.

    Attributes:
        ordinal: as stored, not renumbered.
        is_numeric: an exact or floating number type that can be summed.
    """

    ordinal: int
    name: str
    type: str
    nullable: bool
    is_numeric: bool = False


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What a fingerprint capture says of one column.

    Attributes:
        sum: exact decimal text for numeric types (`NaN` and infinities as the engine writes them),
            None for other types and for no values.
    """

    nulls: int
    sum: str | None


@dataclass(frozen=True, slots=True)
class GrainCounts:
    """How far columns identify rows: `rows` in all, `distinct` combinations, rows with a NULL."""

    rows: int
    distinct: int
    with_null: int

    @property
    def unique(self) -> bool:
        """Whether no row has a NULL in the grain and no two rows agree in all of it."""
        return self.with_null == 0 and self.distinct == self.rows


@dataclass(frozen=True, slots=True)
class TableShape:
    """One base table of a fingerprint: exact row count and columns by ordinal."""

    schema: str
    name: str
    row_count: int
    columns: tuple[Column, ...]


class Warehouse(Protocol):
    """Read-only questions to one branch (or base), each bounded by `QUERY_TIMEOUT_SECONDS`.

    Every method raises `QueryError` when the branch's content is at fault (with the database's
    message) and `WarehouseError` when connection, permission or resources are.
    Not thread-safe: one reader belongs to one thread at a time.
    """

    @property
    def engine(self) -> str:
        """Name of the engine, e.g. `duckdb`."""
        ...

    def relations(self) -> tuple[Relation, ...]:
        """All user tables and views, by schema then name; system schemas left out."""
        ...

    def columns(self, relation: Relation) -> tuple[Column, ...]:
        """The relation's columns by ordinal."""
        ...

    def row_count(self, relation: Relation) -> int:
        """Exact number of rows."""
        ...

    def grain_counts(self, relation: Relation, columns: Sequence[str]) -> GrainCounts:
        """Counts for the given columns, spelled exactly; at least one."""
        ...

    def column_stats(self, relation: Relation, columns: Sequence[Column]) -> dict[str, ColumnStats]:
        """NULLs and exact sums by column name, in one pass over the relation."""
        ...

    def dump(self, relation: Relation, path: Path, *, limit: int | None, max_bytes: int) -> int:
        """Write rows to a new DuckDB file: one table `capture`, all VARCHAR, NULL stays NULL.

        Args:
            relation: what to dump.
            path: of the new file; must not exist.
            limit: None for all rows in any order; else the first rows ordered by all columns in
                ordinal order, ascending, NULLs last, text by bytes, orderless types by their text.
            max_bytes: the file may not grow beyond it.

        Returns:
            The number of rows written.

        Raises:
            CaptureTooLarge: the file would grow beyond `max_bytes`; it is removed.
        """
        ...

    def estimated_bytes(self, relation: Relation) -> int:
        """A rough size of all rows, for the ceiling on full captures."""
        ...

    def shapes(self) -> tuple[TableShape, ...]:
        """All base tables with exact counts and columns, sorted by schema then name in bytes."""
        ...

    def close(self) -> None:
        """Let go of the connection; further calls are errors. Closing twice is fine."""
        ...


class CaptureTooLarge(Exception):
    """A dump would exceed its limit; `limit_bytes` names it."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"capture exceeds {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose a branch is: written on it before anything else, never writable by an agent.

    Attributes:
        installation: random id of this laptop's state or of the operator's release.
        run: run id.
        expires: aware UTC; past it a sweeper may drop the branch though its run seems alive.
    """

    installation: str
    run: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch ready for work.

    Attributes:
        agent_dsn: what the agent and the scripts get; may hold a password.
        sandbox_path: folder the agent must see for the DSN to work; None for a server.
        grader_dsn: what `open_reader` takes; a role of the grader's own where there are roles.
        secrets: exact texts to mask wherever evidence is stored.
        notes: what a person should know (a tolerated weakness), for the run's record.
    """

    name: str
    agent_dsn: str
    grader_dsn: str
    sandbox_path: Path | None = None
    secrets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BranchRecord:
    """Something on a server or disk that carries a mark, whole or half made.

    Attributes:
        name: what `fence` and `drop` take.
        busy: it is being created right now and must be left alone this time.
    """

    name: str
    mark: Mark
    busy: bool = False


MAX_STATEMENT_ROWS = 100


@dataclass(frozen=True, slots=True)
class StatementResult:
    """What one statement on a branch gave.

    Attributes:
        columns: names of the result's columns; empty for a statement without a result.
        rows: the first `MAX_STATEMENT_ROWS` rows as the engine writes them; None is NULL.
        row_count: all rows of the result, or rows changed; 0 where the engine counts none.
        error: the database's message; empty means success.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    row_count: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A right or setting the admin lacks: what is missing and the exact statement to run."""

    message: str
    remedy: str
    fatal: bool = True


class BranchAdapter(Protocol):
    """Makes and drops branches of one base. Thread-safe; every call is bounded in time.

    A name is `branch_name(...)`: at most 63 characters of [a-z0-9-]. Only what carries a mark of
    `installation` is ever changed; anything else of that name is left alone and reported.
    """

    @property
    def engine(self) -> str:
        """Name of the engine."""
        ...

    @property
    def location(self) -> str:
        """The base for people: URL without password, or path."""
        ...

    def privileges(self) -> tuple[Shortfall, ...]:
        """What is missing for branches to work, found without leaving anything behind."""
        ...

    def create(self, name: str, mark: Mark) -> Branch:
        """Make a private writable branch. A leftover of our own under that name is dropped first.

        Raises:
            BaseBusy, WarehouseError: a retry may help.
            BranchError, BranchNotIsolated: it won't.
        """
        ...

    def create_shared(self, name: str, mark: Mark) -> Branch:
        """Make a run's read-only branch; also the probe clone that fingerprints are taken from.

        `agent_dsn` of the result is empty: units get theirs by `grant_read`.
        """
        ...

    def grant_read(self, shared: Branch, name: str, mark: Mark) -> Branch:
        """Give one read unit's attempt its own way into the shared branch.

        Returns:
            A branch called `name` (a role of its own, or a private copy), to be dropped like any.
        """
        ...

    def fence(self, name: str) -> None:
        """Lock the branch's roles out and end their sessions. Missing is success."""
        ...

    def drop(self, name: str) -> None:
        """Fence and remove the branch with its roles. Missing is success; idempotent."""
        ...

    def list_marked(self) -> tuple[BranchRecord, ...]:
        """Everything that carries a mark of this installation, by name."""
        ...

    def open_reader(self, branch: Branch) -> AbstractContextManager[Warehouse]:
        """Open the grader's read-only view of a branch; closes on exit."""
        ...

    def close(self) -> None:
        """Let go of pooled connections and standing instances."""
        ...


def _new_password() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """What an engine's adapter is built from.

    Attributes:
        installation: this installation's random id, part of every mark.
        branches_dir: folder for branches that are files; on the same file system as work folders.
        isolation: `strict` refuses a branch role that reaches other databases, `warn` notes it.
        new_password: makes a fresh random password; injected so that tests can pin it.
        base_wait_seconds: how long to wait for a busy base before giving up.
    """

    installation: str
    branches_dir: Path
    isolation: str = "strict"
    new_password: Callable[[], str] = _new_password
    base_wait_seconds: float = 60.0
