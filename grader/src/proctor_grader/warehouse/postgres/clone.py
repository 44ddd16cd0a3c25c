"""From base to branch database: the clone, who may connect, and what a clone does not take along.

A clone has no comment, owner, ACL, connection limit or settings of its base: it is open to
everybody until PUBLIC is shut out, so it is made without connections allowed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors, sql

from proctor_grader.errors import BaseBusy, BranchError, UserError
from proctor_grader.warehouse.postgres.session import first_value, run_script

if TYPE_CHECKING:
    from proctor_grader.warehouse.postgres.names import BranchRoles
    from proctor_grader.warehouse.postgres.session import Session

CLONE_TIMEOUT_SECONDS = 3600
FILE_COPY_BYTES = 16 * 1024 * 1024
"""From this size on copying files (two checkpoints) beats copying blocks through the log."""

_CHECK_INTERVAL = "100ms"
_FIRST_WAIT_SECONDS = 0.02
_LONGEST_WAIT_SECONDS = 1.0
_SHOWN = 5
# never copied: one would make the branch read-only, the others change who a session is
_LEFT_OUT = {"default_transaction_read_only", "role", "session_authorization"}

# an autovacuum worker has no user, and is in nobody's way: cloning and dropping end it
_USERS = """
SELECT coalesce(usename, 'unknown'), coalesce(application_name, ''), pid::text
FROM pg_stat_activity
WHERE datname = %(base)s AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
UNION ALL
SELECT owner, 'prepared transaction ' || quote_literal(gid), ''
FROM pg_prepared_xacts WHERE database = %(base)s
ORDER BY 1, 2, 3
"""
_SETTINGS = """
SELECT unnest(setconfig) FROM pg_db_role_setting
WHERE setrole = 0 AND setdatabase = (SELECT oid FROM pg_database WHERE datname = %(base)s)
"""


@dataclass(frozen=True, slots=True)
class User:
    """A session (or prepared transaction) that keeps a database busy."""

    role: str
    application: str
    pid: str

    def __str__(self) -> str:
        """Return who it is for people."""
        words = [f"role '{self.role}'"]
        if self.application:
            words.append(f"as '{self.application}'")
        if self.pid:
            words.append(f"(pid {self.pid})")
        return " ".join(words)


def users_of(session: Session, database: str) -> tuple[User, ...]:
    """Say who keeps a database busy; never this session."""
    return tuple(User(*row) for row in session.execute(_USERS, {"base": database}).fetchall())


def listed(users: tuple[User, ...]) -> str:
    """Name the first few for people."""
    more = len(users) - _SHOWN
    text = ", ".join(str(user) for user in users[:_SHOWN])
    return f"{text} and {more} more" if more > 0 else text


def clone_base(session: Session, base: str, name: str, owner: str, wait_seconds: float) -> None:
    """Clone the base into a database that admits nobody yet; wait for a busy base.

    Nobody's session is ended for it.

    Raises:
        BaseBusy: somebody was still connected to the base when the time was over.
        UserError: there is no such base.
    """
    _end_with_client(session)
    limit = sql.Literal(f"{CLONE_TIMEOUT_SECONDS}s")
    session.execute(sql.SQL("SET statement_timeout = {}").format(limit))
    database, template = sql.Identifier(name), sql.Identifier(base)
    create = sql.SQL(
        "CREATE DATABASE {} TEMPLATE {} OWNER {} ALLOW_CONNECTIONS false STRATEGY {}"
    ).format(database, template, sql.Identifier(owner), sql.SQL(_strategy(session, base)))
    deadline = time.monotonic() + wait_seconds
    wait = _FIRST_WAIT_SECONDS
    while True:
        users = users_of(session, base)
        if not users and _created(session, create):
            break
        if time.monotonic() >= deadline:
            users = users or users_of(session, base)
            who = listed(users) or "somebody who has left just now"
            raise BaseBusy(
                f"is in use by {who}, so it can't be cloned (waited {wait_seconds:g} s)",
                where=f"base '{base}'",
                remedy=f'end these sessions, or keep sessions out: ALTER DATABASE "{base}"'
                " ALLOW_CONNECTIONS false",
            )
        time.sleep(min(wait, max(0.0, deadline - time.monotonic())))
        wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
    session.execute("RESET statement_timeout")


def open_database(
    session: Session, base: str, name: str, roles: BranchRoles, *, has_units: bool
) -> tuple[str, ...]:
    """Shut PUBLIC out, let the branch's roles in, copy the base's settings; in one transaction.

    Returns:
        Notes on settings that could not be copied.
    """
    database = sql.Identifier(name)
    owner, agent, reader, units = (sql.Identifier(role) for role in roles.all)
    grants = [sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, reader)]
    if has_units:
        grants += [sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, units)]
    else:
        rights = sql.SQL("GRANT CREATE, CONNECT, TEMPORARY ON DATABASE {} TO {}")
        grants += [rights.format(database, agent)]
    revoke = sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database)
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(database)
    notes = _copy_settings(session, base, name)
    run_script(session, [revoke, *grants, allow])
    _check_closed(session, name, owner)
    return notes


def _check_closed(session: Session, name: str, owner: sql.Identifier) -> None:
    # a REVOKE by somebody without the right to it "succeeds" with a warning
    is_open = first_value(
        session,
        "SELECT EXISTS (SELECT FROM pg_database, aclexplode(coalesce(datacl,"
        " acldefault('d', datdba))) AS entry WHERE datname = %(name)s AND entry.grantee = 0)",
        {"name": name},
    )
    if is_open:
        raise BranchError(
            f"PUBLIC could not be shut out of branch '{name}': the admin lacks the rights of"
            f" {owner.as_string(session)}, which it has made",
            remedy="run 'ALTER ROLE ... INHERIT' for the admin",
        )


def _created(session: Session, create: sql.Composed) -> bool:
    try:
        session.execute(create)
    except errors.ObjectInUse:
        return False
    except errors.InvalidCatalogName as error:
        raise UserError(error.diag.message_primary or "there is no such base") from error
    return True


def _end_with_client(session: Session) -> None:
    """Have the server give up cloning as soon as this process is gone."""
    try:
        session.execute(
            sql.SQL("SET client_connection_check_interval = {}").format(
                sql.Literal(_CHECK_INTERVAL)
            )
        )
    except errors.InvalidParameterValue:
        return  # not on this server's platform: the sweeper waits for the session to end


def _strategy(session: Session, base: str) -> str:
    try:
        size = first_value(
            session,
            "SELECT pg_database_size(oid) FROM pg_database WHERE datname = %(base)s",
            {"base": base},
        )
    except errors.InsufficientPrivilege:
        size = 0
    return "file_copy" if (size or 0) >= FILE_COPY_BYTES else "wal_log"


def _copy_settings(session: Session, base: str, name: str) -> tuple[str, ...]:
    notes = []
    for (entry,) in session.execute(_SETTINGS, {"base": base}).fetchall():
        setting, _, value = str(entry).partition("=")
        if setting in _LEFT_OUT:
            continue
        try:
            # by way of the session, which alone takes a list as it is stored
            with session.transaction():
                session.execute("SELECT set_config(%s, %s, true)", [setting, value])
                copy = sql.SQL("ALTER DATABASE {} SET {} FROM CURRENT")
                parts = sql.SQL(".").join(sql.Identifier(part) for part in setting.split("."))
                session.execute(copy.format(sql.Identifier(name), parts))
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            notes.append(
                f"the base's setting '{setting}' was not copied: {error.diag.message_primary}"
            )
    return tuple(notes)
