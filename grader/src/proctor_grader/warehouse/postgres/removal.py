"""The way back: locks a branch's roles out, drops its database, then its roles."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors, sql

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.postgres import faults
from proctor_grader.warehouse.postgres.clone import listed, users_of
from proctor_grader.warehouse.postgres.registry import look_up
from proctor_grader.warehouse.postgres.roles import drop_roles, fence_roles

if TYPE_CHECKING:
    from proctor_grader.warehouse.postgres.registry import Found
    from proctor_grader.warehouse.postgres.session import Server, Session

REMOVAL_SECONDS = 45.0
"""How long to try again."""

DROP_TIMEOUT_SECONDS = 600
_FIRST_WAIT_SECONDS = 0.02
_LONGEST_WAIT_SECONDS = 1.0
# a session is still in the way, or somebody else removes the same branch at the same time
_PASSING = {
    faults.IN_USE,
    faults.LOCK_TIMEOUT,
    faults.DEPENDENT,
    faults.TIMEOUT,
    "40001",
    "40P01",
    "42704",
    "3D000",
    "XX000",
}


def fence_branch(server: Server, name: str, installation: str) -> None:
    """Lock a branch's roles out and end their sessions; nothing there is success.

    Raises:
        BranchError: what is there does not carry a mark of this installation.
        WarehouseError: sessions did not end, or the server fails.
    """
    with server.admin() as session:
        found = look_up(session, name, installation)
        if found is not None:
            fence_roles(server, session, found)


def remove_branch(server: Server, name: str, installation: str) -> None:
    """Remove a branch, whole or half made, with its roles; nothing there is success.

    The database goes first: a role can't be dropped while it owns something in it.

    Raises:
        BranchError: what is there does not carry a mark of this installation.
        WarehouseError: somebody else's session keeps it in use (named), or the server fails.
    """
    deadline = time.monotonic() + REMOVAL_SECONDS
    wait = _FIRST_WAIT_SECONDS
    with server.admin() as session:
        while (found := look_up(session, name, installation)) is not None:
            try:
                _remove(server, session, name, found)
            except psycopg.Error as error:
                if error.sqlstate not in _PASSING:
                    raise
                if time.monotonic() > deadline:
                    raise _stuck(session, name, error) from error
                time.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)


def _remove(server: Server, session: Session, name: str, found: Found) -> None:
    fence_roles(server, session, found)
    database = found.database
    if database is not None:
        identifier = sql.Identifier(name)
        if database.is_template and not database.is_invalid:
            session.execute(sql.SQL("ALTER DATABASE {} IS_TEMPLATE false").format(identifier))
        # the server writes everything to disk first, which a busy one may need minutes for
        limit = sql.Literal(f"{DROP_TIMEOUT_SECONDS}s")
        session.execute(sql.SQL("SET statement_timeout = {}").format(limit))
        # not FORCE: it refuses to end an autovacuum worker, which the plain form does by itself
        session.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(identifier))
        session.execute("RESET statement_timeout")
    drop_roles(server, session, name, found)


def _stuck(session: Session, name: str, error: psycopg.Error) -> WarehouseError:
    users = users_of(session, name)
    if isinstance(error, errors.ObjectInUse) and users:
        return WarehouseError(
            f"branch '{name}' can't be dropped while it is in use by {listed(users)}",
            remedy="end these sessions",
        )
    return WarehouseError(f"branch '{name}' can't be dropped: {faults.told(error)}")
