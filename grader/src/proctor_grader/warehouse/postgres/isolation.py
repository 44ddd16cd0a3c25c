"""Which other databases a branch's role could reach. Other databases are never changed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader.errors import BranchNotIsolated, ProctorError
from proctor_grader.warehouse.postgres.session import MAINTENANCE_DATABASES, first_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor_grader.warehouse.postgres.session import Server, Session

STRICT = "strict"
_REMEMBER_SECONDS = 60.0
_SHOWN = 5

_BY_ROLE = """
SELECT datname, datistemplate FROM pg_database
WHERE datallowconn AND datname <> ALL (%(own)s) AND has_database_privilege(%(role)s, oid, 'CONNECT')
ORDER BY datname
"""
_BY_PUBLIC = """
SELECT datname, datistemplate FROM pg_database
WHERE datallowconn AND EXISTS (
    SELECT FROM aclexplode(coalesce(datacl, acldefault('d', datdba))) AS entry
    WHERE entry.grantee = 0 AND entry.privilege_type = 'CONNECT')
ORDER BY datname
"""
# something a person put there, or a place where a stranger may put something
_HOLDS_SOMETHING = """
SELECT EXISTS (
    SELECT FROM pg_class AS relation JOIN pg_namespace AS schema ON schema.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't'
      AND nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                      AND objid = relation.oid AND deptype = 'e'))
OR EXISTS (
    SELECT FROM pg_namespace AS schema, aclexplode(nspacl) AS entry
    WHERE entry.grantee = 0 AND entry.privilege_type = 'CREATE' AND nspname NOT LIKE 'pg\\_%')
"""


@dataclass(frozen=True, slots=True)
class Reach:
    """Other databases that a branch's role could connect to; empty if it is isolated.

    Attributes:
        databases: by name.
        base: the base.
        admin: the role that must stay able to connect.
    """

    databases: tuple[str, ...]
    base: str
    admin: str

    @property
    def message(self) -> str:
        """What is wrong."""
        names = [f"'{name}'" for name in self.databases]
        more = len(names) - _SHOWN
        shown = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"a branch's role could also connect to {shown}"

    @property
    def remedy(self) -> str:
        """The exact statements, for the owner of each database or a superuser."""
        return " ".join(self._statements(name) for name in self.databases[:_SHOWN])

    def _statements(self, name: str) -> str:
        database, admin = _quoted(name), _quoted(self.admin)
        if name == self.base and name not in MAINTENANCE_DATABASES:
            return f"ALTER DATABASE {database} ALLOW_CONNECTIONS false;"
        return (
            f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC;"
            f" GRANT CONNECT ON DATABASE {database} TO {admin};"
        )


class Neighbours:
    """Finds databases in reach, and remembers for a minute which of them hold nothing.

    The maintenance database and templates are everybody's on a stock server: they are tolerated
    while they hold no user's table and no schema in which everybody may create one.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._empty_until: dict[str, float] = {}

    def reach_of(self, session: Session, role: str, own: Sequence[str]) -> Reach:
        """Say what a role could reach beyond databases of its own."""
        rows = session.execute(_BY_ROLE, {"role": role, "own": list(own)}).fetchall()
        return self._reach(session, rows)

    def reach_of_public(self, session: Session) -> Reach:
        """Say what a role without any grant could reach."""
        return self._reach(session, session.execute(_BY_PUBLIC).fetchall())

    def _reach(self, session: Session, rows: list[tuple[str, bool]]) -> Reach:
        base = self._server.target.base
        found = tuple(
            name
            for name, is_template in rows
            if name == base
            or not ((is_template or name in MAINTENANCE_DATABASES) and self._is_empty(name))
        )
        return Reach(found, base, session.info.user)

    def _is_empty(self, database: str) -> bool:
        with self._lock:
            if self._empty_until.get(database, 0.0) > time.monotonic():
                return True
            try:
                with self._server.admin_in(database) as inside:
                    is_empty = not first_value(inside, _HOLDS_SOMETHING)
            except ProctorError:
                return False
            if is_empty:
                self._empty_until[database] = time.monotonic() + _REMEMBER_SECONDS
            return is_empty


def check_isolation(reach: Reach, mode: str) -> tuple[str, ...]:
    """Refuse a branch whose role reaches other databases, or note it.

    Raises:
        BranchNotIsolated: in mode `strict`, with the statements to run.
    """
    if not reach.databases:
        return ()
    if mode == STRICT:
        raise BranchNotIsolated(reach.message, remedy=f"run: {reach.remedy}")
    return (f"{reach.message}; to prevent it: {reach.remedy}",)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
