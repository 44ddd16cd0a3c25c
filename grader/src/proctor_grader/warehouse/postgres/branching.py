"""Branches of a PostgreSQL base, made in an order that leaves no gap.

1. all roles in one transaction, the owner's comment carrying the mark, none may log in;
2. the clone, owned by the marked role and admitting nobody;
3. PUBLIC shut out, the branch's roles let in;
4. every object handed over to the agent's role by the admin, who is never inside again;
5. logins allowed.
Whatever interrupts it leaves a marked role: `list_marked` finds it, `drop` removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import errors

from proctor_grader.errors import BranchError, ProctorError, UserError, WarehouseError
from proctor_grader.warehouse.base import Branch, BranchRecord, Mark, Shortfall
from proctor_grader.warehouse.postgres.clone import clone_base, open_database
from proctor_grader.warehouse.postgres.faults import connect_fault
from proctor_grader.warehouse.postgres.isolation import Neighbours, check_isolation
from proctor_grader.warehouse.postgres.names import branch_roles, check_name, session_name
from proctor_grader.warehouse.postgres.owners import (
    hand_over,
    open_for_reading,
    out_of_reach,
    owned_objects,
)
from proctor_grader.warehouse.postgres.reading import ENGINE, open_reader
from proctor_grader.warehouse.postgres.registry import is_being_made, list_records, look_up
from proctor_grader.warehouse.postgres.removal import fence_branch, remove_branch
from proctor_grader.warehouse.postgres.rights import MIN_VERSION, shortfalls
from proctor_grader.warehouse.postgres.roles import (
    Passwords,
    allow_login,
    make_branch_roles,
    make_unit_role,
)
from proctor_grader.warehouse.postgres.session import LIMITS, Server, Session, connect
from proctor_grader.warehouse.postgres.url import parse_url

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from proctor_grader.warehouse.base import AdapterOptions, Warehouse
    from proctor_grader.warehouse.postgres.names import BranchRoles


def open_adapter(url: str, options: AdapterOptions) -> PostgresAdapter:
    """Open an adapter over the base that a URL names; connects to nothing yet.

    Raises:
        UserError: the URL is malformed.
    """
    return PostgresAdapter(Server(parse_url(url)), options)


class PostgresAdapter:
    """Makes and drops branches of one base. Thread-safe: every call has sessions of its own."""

    def __init__(self, server: Server, options: AdapterOptions) -> None:
        self._server = server
        self._options = options
        self._neighbours = Neighbours(server)
        self._roles_get_in = False

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return ENGINE

    @property
    def location(self) -> str:
        """The base's URL without password."""
        return self._server.target.location

    def privileges(self) -> tuple[Shortfall, ...]:
        """What is missing for branches to work, found without leaving anything behind."""
        return shortfalls(self._server, self._neighbours, self._options.isolation)

    def create(self, name: str, mark: Mark) -> Branch:
        """Make a private branch that the agent's role may change as it likes."""
        return self._make(name, mark, has_units=False)

    def create_shared(self, name: str, mark: Mark) -> Branch:
        """Make a run's read-only branch, which read units enter by roles of their own."""
        return self._make(name, mark, has_units=True)

    def grant_read(self, shared: Branch, name: str, mark: Mark) -> Branch:
        """Make a role that may read the shared branch and see nothing of the other units."""
        self._check(name, mark, has_database=False)
        password = self._options.new_password()
        with self._server.admin() as session:
            self._clear(session, name)
            make_unit_role(session, name, mark, branch_roles(shared.name).units, password)
        url = self._server.target.branch_url(shared.name, name, password, portable=True)
        return Branch(name, url, shared.grader_dsn, secrets=(password,))

    def fence(self, name: str) -> None:
        """Lock the branch's roles out (the grader's too) and end their sessions."""
        fence_branch(self._server, name, self._options.installation)

    def drop(self, name: str) -> None:
        """Fence and remove the branch with its roles."""
        remove_branch(self._server, name, self._options.installation)

    def list_marked(self) -> tuple[BranchRecord, ...]:
        """Everything on the server that carries a mark of this installation, by name."""
        with self._server.admin() as session:
            return list_records(session, self._options.installation)

    def open_reader(self, branch: Branch) -> AbstractContextManager[Warehouse]:
        """Open the grader's read-only view of a branch."""
        return open_reader(branch.grader_dsn)

    def close(self) -> None:
        """Nothing to let go of: no connection outlives a call."""

    def _make(self, name: str, mark: Mark, *, has_units: bool) -> Branch:
        self._check(name, mark, has_database=True)
        new_password = self._options.new_password
        passwords = Passwords("" if has_units else new_password(), new_password())
        # the session's name tells others that the branch is being made, from before its first role
        with self._server.admin(session_name(name)) as session:
            if session.info.server_version < MIN_VERSION:
                raise BranchError("PostgreSQL 15 or newer is needed", where=self.location)
            self._clear(session, name)
            try:
                roles = make_branch_roles(session, name, mark, passwords, has_units=has_units)
            except (errors.DuplicateObject, errors.UniqueViolation) as error:
                raise _being_made(name) from error
            try:
                notes = self._build(session, name, roles, has_units=has_units)
                branch = self._branch(name, roles, passwords, notes)
                self._check_login(branch)
            except BaseException as error:
                self._undo(name, error)
                raise
        return branch

    def _build(
        self, session: Session, name: str, roles: BranchRoles, *, has_units: bool
    ) -> tuple[str, ...]:
        base, options = self._server.target.base, self._options
        # before the clone, to fail at once; after it again, since others may have made databases
        check_isolation(self._neighbours.reach_of(session, roles.agent, [name]), options.isolation)
        clone_base(session, base, name, roles.owner, options.base_wait_seconds)
        notes = open_database(session, base, name, roles, has_units=has_units)
        with self._server.admin_in(name, session_name(name)) as inside:
            objects = owned_objects(inside, except_of=roles.agent)
            stuck = out_of_reach(objects, inside.info.user)
            if stuck:
                raise BranchError(stuck[0], where=self.location, remedy=stuck[1])
            hand_over(inside, objects, roles.agent)
            if has_units:
                open_for_reading(inside, roles.units)
        reach = self._neighbours.reach_of(session, roles.agent, [name])
        notes += check_isolation(reach, options.isolation)
        allow_login(session, [roles.reader] if has_units else [roles.agent, roles.reader])
        return notes

    def _branch(
        self, name: str, roles: BranchRoles, passwords: Passwords, notes: tuple[str, ...]
    ) -> Branch:
        url = self._server.target.branch_url
        agent = url(name, roles.agent, passwords.agent, portable=True) if passwords.agent else ""
        reader = url(name, roles.reader, passwords.reader, portable=False)
        secrets = tuple(secret for secret in (passwords.agent, passwords.reader) if secret)
        return Branch(name, agent, reader, secrets=secrets, notes=notes)

    def _check(self, name: str, mark: Mark, *, has_database: bool) -> None:
        if mark.installation != self._options.installation:
            raise ValueError("a branch can only be marked with the adapter's own installation")
        if mark.expires.tzinfo is None:
            raise ValueError("a mark's end needs a time zone")
        check_name(name, has_database=has_database)

    def _clear(self, session: Session, name: str) -> None:
        """Make way: remove a leftover of our own, leave alone what another process makes."""
        if look_up(session, name, self._options.installation) is None:
            return
        if is_being_made(session, name):
            raise _being_made(name)
        self.drop(name)

    def _check_login(self, branch: Branch) -> None:
        """Prove once that the server lets roles of a branch in (by its pg_hba.conf)."""
        if self._roles_get_in:
            return
        dsn = branch.agent_dsn or branch.grader_dsn
        try:
            connect({"conninfo": dsn, **LIMITS}).close()
        except psycopg.Error as error:
            fault = connect_fault(error, where=self.location, secrets=branch.secrets)
            if not isinstance(fault, UserError):
                raise fault from None  # the cause may quote a secret
            raise BranchError(
                f"the server does not let a branch's role in: {fault.message}",
                where=self.location,
                remedy="admit all roles with scram-sha-256 in the server's pg_hba.conf",
            ) from None
        self._roles_get_in = True

    def _undo(self, name: str, error: BaseException) -> None:
        try:
            self.drop(name)
        except ProctorError as left:
            # the mark stays, so a sweep finds what is left
            error.add_note(f"branch '{name}' was left half made: {left}")


def _being_made(name: str) -> WarehouseError:
    return WarehouseError(f"branch '{name}' is being made by another process right now")
