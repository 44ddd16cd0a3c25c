"""The roles of a branch: made, locked out, removed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

from psycopg import errors, sql

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.postgres.names import BranchRoles, branch_roles, render_mark
from proctor_grader.warehouse.postgres.session import first_value, run_script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor_grader.warehouse.base import Mark
    from proctor_grader.warehouse.postgres.registry import Found
    from proctor_grader.warehouse.postgres.session import Server, Session

AGENT_CONNECTIONS = 32
"""Of one agent: enough for a parallel build, too few to shut the others out of the server."""

UNIT_CONNECTIONS = 8
_INHERIT_GRANTS = 160000
_FENCE_SECONDS = 15.0
_POLL_SECONDS = 0.01

_TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usesysid = ANY (%(oids)s)
"""
_PREPARED = """
SELECT gid, owner, database FROM pg_prepared_xacts
WHERE owner IN (SELECT rolname FROM pg_roles WHERE oid = ANY (%(oids)s))
"""
_OWNING = """
SELECT DISTINCT datname FROM pg_shdepend JOIN pg_database ON pg_database.oid = dbid
WHERE refclassid = 'pg_authid'::regclass AND refobjid = ANY (%(oids)s) AND datname <> %(branch)s
"""


@dataclass(frozen=True, slots=True)
class Passwords:
    """Of the roles that log in; the agent's is empty where it never does."""

    agent: str
    reader: str


def make_branch_roles(
    session: Session, name: str, mark: Mark, passwords: Passwords, *, has_units: bool
) -> BranchRoles:
    """Make all roles of a branch database in one transaction, none of which may log in yet.

    The reader is a member of the agent's role: it reads whatever the agent makes, on this branch
    only, and bypasses row-level security as an owner does. (pg_read_all_data would reach the
    server's password hashes through an agent's function, and needs a superuser's grant from 16.)
    That it could write too is held off by its transactions, which are READ ONLY.
    """
    roles = branch_roles(name)
    owner, agent, reader, units = (sql.Identifier(role) for role in roles.all)
    member = _membership(session, can_set=True)
    reading = _membership(session, can_set=False)
    script = [
        sql.SQL("CREATE ROLE {} NOLOGIN").format(owner),
        sql.SQL("COMMENT ON ROLE {} IS {}").format(owner, sql.Literal(render_mark(mark))),
        sql.SQL("CREATE ROLE {} NOLOGIN CONNECTION LIMIT {}{}").format(
            agent, sql.Literal(AGENT_CONNECTIONS), _password(session, roles.agent, passwords.agent)
        ),
        sql.SQL("CREATE ROLE {} NOLOGIN{}").format(
            reader, _password(session, roles.reader, passwords.reader)
        ),
        sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(reader),
        sql.SQL("GRANT {}, {}, {} TO CURRENT_USER{}").format(owner, agent, reader, member),
        sql.SQL("GRANT {} TO {}{}").format(agent, reader, reading),
    ]
    if has_units:
        script += [
            sql.SQL("CREATE ROLE {} NOLOGIN").format(units),
            sql.SQL("GRANT {} TO CURRENT_USER{}").format(units, member),
        ]
    run_script(session, script)
    return roles


def make_unit_role(session: Session, name: str, mark: Mark, group: str, password: str) -> None:
    """Make a read unit's own role, which may log in; marked by its own comment."""
    role = sql.Identifier(name)
    run_script(
        session,
        [
            sql.SQL("CREATE ROLE {} LOGIN CONNECTION LIMIT {}{}").format(
                role, sql.Literal(UNIT_CONNECTIONS), _password(session, name, password)
            ),
            sql.SQL("COMMENT ON ROLE {} IS {}").format(role, sql.Literal(render_mark(mark))),
            sql.SQL("GRANT {} TO {}{}").format(
                sql.Identifier(group), role, _membership(session, can_set=False)
            ),
            sql.SQL("GRANT {} TO CURRENT_USER{}").format(role, _membership(session, can_set=True)),
        ],
    )


def allow_login(session: Session, roles: Sequence[str]) -> None:
    """Let roles log in: the last step of making a branch."""
    run_script(session, [sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(r)) for r in roles])


def fence_roles(server: Server, session: Session, found: Found) -> None:
    """Lock out all roles of a branch and end their sessions, wherever on the server they are.

    An agent may hold a lock on its own role (an open ALTER ROLE, in a prepared transaction even),
    so sessions are ended first and again until none is left.

    Raises:
        WarehouseError: sessions did not end in time.
    """
    deadline = time.monotonic() + _FENCE_SECONDS
    barred = [role.name for role in (*found.roles, *found.units) if role.can_login]
    given = {"oids": found.oids}
    while True:
        left = first_value(session, _TERMINATE, given)
        roll_back_prepared(server, session, found)
        try:
            if barred:
                bar = sql.SQL("ALTER ROLE {} NOLOGIN")
                timeout = sql.SQL("SET LOCAL lock_timeout = '1s'")
                run_script(session, [timeout, *(bar.format(sql.Identifier(r)) for r in barred)])
                barred = []
                continue
        except errors.LockNotAvailable:
            left = 1
        if not left:
            return
        if time.monotonic() > deadline:
            raise WarehouseError(
                f"{left} sessions of the branch's roles did not end within {_FENCE_SECONDS:g} s"
            )
        time.sleep(_POLL_SECONDS)


def roll_back_prepared(server: Server, session: Session, found: Found) -> None:
    """Undo transactions that the branch's roles left prepared: they outlive their sessions.

    This is done in the database concerned and as the role concerned; the statement names no
    object, so nothing that an agent made can run.
    """
    for gid, owner, database in session.execute(_PREPARED, {"oids": found.oids}).fetchall():
        with server.admin_in(database) as inside:
            inside.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(owner)))
            try:
                inside.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
            except errors.UndefinedObject:
                continue  # somebody else was faster


def drop_roles(server: Server, session: Session, name: str, found: Found) -> None:
    """Remove a branch's own roles, all at once; its database must be gone.

    A role may have left something in another database that everybody may connect to (a large
    object, a default privilege): only then is it removed there, by what that role owns alone.
    """
    roles = sql.SQL(", ").join(sql.Identifier(role.name) for role in found.roles)
    drop = sql.SQL("DROP ROLE IF EXISTS {}").format(roles)
    oids = [role.oid for role in found.roles]
    try:
        session.execute(drop)
    except errors.DependentObjectsStillExist:
        given = {"oids": oids, "branch": name}
        for (database,) in session.execute(_OWNING, given).fetchall():
            with server.admin_in(database) as inside:
                inside.execute(sql.SQL("DROP OWNED BY {}").format(roles))
        session.execute(drop)


def _password(session: Session, role: str, password: str) -> sql.Composable:
    if not password:
        return sql.SQL("")
    # hashed here, so that no password stands in a statement, and in no log of the server
    hashed = session.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    return sql.SQL(" PASSWORD {}").format(sql.Literal(hashed.decode()))


def _membership(session: Session, *, can_set: bool) -> sql.SQL:
    """What a grant of a role says from 16 on, where each of its powers is granted by itself."""
    if session.info.server_version < _INHERIT_GRANTS:
        return sql.SQL("")
    words: LiteralString = (
        " WITH INHERIT TRUE, SET TRUE" if can_set else " WITH INHERIT TRUE, SET FALSE"
    )
    return sql.SQL(words)
