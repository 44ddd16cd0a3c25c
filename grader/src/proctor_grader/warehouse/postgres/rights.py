"""What the admin or the base lacks for branches to work. Looks only; leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.errors import ProctorError, UserError
from proctor_grader.warehouse.base import Shortfall
from proctor_grader.warehouse.postgres.clone import listed, users_of
from proctor_grader.warehouse.postgres.isolation import STRICT
from proctor_grader.warehouse.postgres.owners import out_of_reach, owned_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proctor_grader.warehouse.postgres.isolation import Neighbours
    from proctor_grader.warehouse.postgres.session import Server, Session

MIN_VERSION = 150000
"""Before it a role could grant itself to others, and a clone took checkpoints in any case."""

_INHERIT_GRANTS = 160000
_ADMIN = """
SELECT rolsuper, rolcreatedb, rolcreaterole, rolinherit FROM pg_roles WHERE rolname = current_user
"""
_BASE = """
SELECT datallowconn, pg_has_role(datdba, 'USAGE') OR datistemplate,
       has_database_privilege(oid, 'CONNECT'), pg_get_userbyid(datdba)
FROM pg_database WHERE datname = %(base)s
"""


def shortfalls(server: Server, neighbours: Neighbours, isolation: str) -> tuple[Shortfall, ...]:
    """List what is missing, each with the statement that changes it.

    Raises:
        UserError: the server refuses the admin, or there is no such base.
        WarehouseError: the server can't be reached.
    """
    with server.admin() as session:
        if session.info.server_version < MIN_VERSION:
            version = session.info.parameter_status("server_version") or "an older one"
            message = f"PostgreSQL 15 or newer is needed (found {version})"
            return (Shortfall(message, "upgrade the server"),)
        found = [*_of_admin(session), *_of_base(server, session)]
        reach = neighbours.reach_of_public(session)
    if reach.databases:
        found.append(Shortfall(reach.message, reach.remedy, fatal=isolation == STRICT))
    return tuple(found)


def _of_admin(session: Session) -> Iterator[Shortfall]:
    admin = _quoted(session.info.user)
    row = session.execute(_ADMIN).fetchone()
    is_super, createdb, createrole, inherit = row or (False, False, False, False)
    if is_super:
        return
    for held, right in ((createdb, "CREATEDB"), (createrole, "CREATEROLE")):
        if not held:
            yield Shortfall(f"role {admin} lacks {right}", f"ALTER ROLE {admin} {right};")
    if not inherit and session.info.server_version < _INHERIT_GRANTS:
        yield Shortfall(
            f"role {admin} does not inherit rights of the roles it makes",
            f"ALTER ROLE {admin} INHERIT;",
        )


def _of_base(server: Server, session: Session) -> Iterator[Shortfall]:
    base, admin = server.target.base, _quoted(session.info.user)
    row = session.execute(_BASE, {"base": base}).fetchone()
    if row is None:
        raise UserError(
            f"there is no database '{base}'",
            where=server.target.location,
            remedy="check the database in the warehouse's URL",
        )
    admits, may_clone, may_connect, owner = row
    if not may_clone:
        yield Shortfall(
            f"base '{base}' belongs to role '{owner}', so {admin} may not clone it",
            f"ALTER DATABASE {_quoted(base)} OWNER TO {admin};",
        )
    users = users_of(session, base)
    if users:
        yield Shortfall(
            f"base '{base}' is in use by {listed(users)}: it can't be cloned meanwhile",
            f"ALTER DATABASE {_quoted(base)} ALLOW_CONNECTIONS false;",
            fatal=False,
        )
    if admits and may_connect:
        yield from _of_objects(server)


def _of_objects(server: Server) -> Iterator[Shortfall]:
    try:
        with server.admin_in(server.target.base) as inside:
            stuck = out_of_reach(owned_objects(inside), inside.info.user)
    except ProctorError as error:
        yield Shortfall(
            f"the base's objects could not be looked at: {error.message}", error.remedy, fatal=False
        )
        return
    if stuck:
        yield Shortfall(*stuck)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
