"""What on a server carries a mark: roles by their comments, databases by their owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader.errors import BranchError
from proctor_grader.warehouse.base import BranchRecord, Mark
from proctor_grader.warehouse.postgres.names import (
    APPLICATION,
    branch_roles,
    name_of_owner,
    parse_mark,
    session_name,
)

if TYPE_CHECKING:
    from proctor_grader.warehouse.postgres.session import Session

INVALID_LIMIT = -2
"""Connection limit of a database whose removal was interrupted: it can only be dropped."""

# a branch's database and roles, its read units' roles too
_ROLES = """
SELECT role.rolname, role.oid, role.rolcanlogin, shobj_description(role.oid, 'pg_authid'),
       role.rolname <> ALL (%(names)s)
FROM pg_roles AS role
WHERE role.rolname = ANY (%(names)s)
   OR role.oid IN (
        SELECT member FROM pg_auth_members
        WHERE roleid = (SELECT oid FROM pg_roles WHERE rolname = %(units)s)
          AND member <> (SELECT oid FROM pg_roles WHERE rolname = current_user))
"""
_DATABASE = """
SELECT oid, datdba, datconnlimit, datistemplate FROM pg_database WHERE datname = %(name)s
"""
_BUSY = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity AS session JOIN pg_roles AS role ON role.oid = session.usesysid
    WHERE session.application_name = %(session)s AND session.pid <> pg_backend_pid()
      AND (role.rolcreaterole OR role.rolsuper))
"""
# an agent may call its session as it likes, so only roles that can make branches count as busy
_ALL = """
SELECT rolname, shobj_description(oid, 'pg_authid') FROM pg_roles
WHERE shobj_description(oid, 'pg_authid') LIKE '{%%'
UNION ALL
SELECT NULL, session.application_name
FROM pg_stat_activity AS session JOIN pg_roles AS role ON role.oid = session.usesysid
WHERE session.application_name LIKE %(prefix)s AND (role.rolcreaterole OR role.rolsuper)
"""


@dataclass(frozen=True, slots=True)
class Role:
    """A role of a branch."""

    name: str
    oid: int
    can_login: bool


@dataclass(frozen=True, slots=True)
class Database:
    """A branch's database.

    Attributes:
        is_invalid: its removal was interrupted.
    """

    name: str
    is_template: bool
    is_invalid: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What is there of a branch of this installation.

    Attributes:
        database: None if it is not made yet, is gone, or is another branch's (a read unit's).
        roles: the branch's own; the marked one is among them.
        units: roles of read units on this branch, each a branch of its own.
    """

    database: Database | None
    roles: tuple[Role, ...]
    units: tuple[Role, ...]

    @property
    def oids(self) -> list[int]:
        """Roles whose sessions are in the way."""
        return [role.oid for role in (*self.roles, *self.units)]


def look_up(session: Session, name: str, installation: str) -> Found | None:
    """Find what is there under a branch's name; None if nothing is.

    Raises:
        BranchError: something is there that does not carry a mark of this installation.
    """
    names = branch_roles(name)
    given = {"name": name, "names": [name, *names.all], "units": names.units}
    own: list[Role] = []
    units: list[Role] = []
    marks: dict[str, Mark] = {}
    for role_name, oid, can_login, comment, is_unit in session.execute(_ROLES, given):
        mark = parse_mark(comment)
        if mark and mark.installation == installation:
            marks[role_name] = mark
        if not is_unit:
            own.append(Role(role_name, oid, can_login))
        elif role_name in marks:
            units.append(Role(role_name, oid, can_login))
    row = session.execute(_DATABASE, given).fetchone()
    if row is None and not own:
        return None
    database = None
    if row is not None:
        owner = next((role for role in own if role.oid == row[1]), None)
        if owner is None or owner.name != names.owner or owner.name not in marks:
            raise _not_ours("database", name)
        database = Database(name, bool(row[3]), row[2] == INVALID_LIMIT)
    marked = marks.keys() & {name, names.owner}
    for role in own:
        if not marked or (role.name == name and name not in marks):
            raise _not_ours("role", role.name)
    return Found(database, tuple(own), tuple(units))


def is_being_made(session: Session, name: str) -> bool:
    """Whether another session is making the branch right now."""
    row = session.execute(_BUSY, {"session": session_name(name)}).fetchone()
    return bool(row and row[0])


def list_records(session: Session, installation: str) -> tuple[BranchRecord, ...]:
    """List everything that carries a mark of an installation, by name."""
    # one statement: it sees roles as of its start and sessions as of later, so that a branch
    # whose roles it sees is either being made, or was whole (or given up) by then
    rows = session.execute(_ALL, {"prefix": f"{APPLICATION}:%"}).fetchall()
    making = {text for role, text in rows if role is None}
    records = []
    for role, comment in rows:
        mark = parse_mark(comment) if role is not None else None
        if mark is None or mark.installation != installation:
            continue
        name = name_of_owner(role) or role
        records.append(BranchRecord(name, mark, busy=session_name(name) in making))
    return tuple(sorted(records, key=lambda record: record.name))


def _not_ours(what: str, name: str) -> BranchError:
    return BranchError(
        f"{what} '{name}' carries no mark of this installation and is left alone",
        remedy="remove or rename it by hand if nobody needs it",
    )
