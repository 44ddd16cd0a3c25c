"""A throw-away PostgreSQL server: scram passwords, loopback only, no unix socket, no fsync."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.services.part import POSTGRES, require
from tests.services.process import HOST, ServerProcess

SUPERUSER = "postgres"
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "off",
    "full_page_writes": "off",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] %u@%d ",
}


@dataclass(frozen=True, slots=True)
class PostgresBase:
    """A base database that belongs to an admin role (LOGIN, CREATEDB, CREATEROLE, no superuser)."""

    server: PostgresServer
    name: str
    admin: str
    password: str

    @property
    def url(self) -> str:
        """The base as its admin."""
        return self.server.url(self.name, self.admin, self.password)

    @contextmanager
    def connect(self, database: str | None = None) -> Iterator[psycopg.Connection[Any]]:
        """A session of the admin, autocommit, in the base or in another database."""
        url = self.server.url(database or self.name, self.admin, self.password)
        with psycopg.connect(url, autocommit=True) as session:
            yield session

    def execute(self, *statements: str) -> None:
        """Run statements in the base as its admin and leave: no session stays on the base."""
        with self.connect() as session:
            for statement in statements:
                session.execute(statement.encode())


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server and how its superuser gets in."""

    host: str
    port: int
    password: str
    data_dir: Path
    log_file: Path

    @property
    def superuser_url(self) -> str:
        """The maintenance database as superuser."""
        return self.url("postgres", SUPERUSER, self.password)

    def url(self, database: str, user: str, password: str) -> str:
        """The URL of a database on this server; every part may hold any character."""
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{who}@{self.host}:{self.port}/{quote(database, safe='')}"

    @contextmanager
    def connect(self, database: str = "postgres") -> Iterator[psycopg.Connection[Any]]:
        """A session of the superuser, autocommit."""
        url = self.url(database, SUPERUSER, self.password)
        with psycopg.connect(url, autocommit=True) as session:
            yield session

    def make_base(self, *statements: str, closed_to_public: bool = True) -> PostgresBase:
        """Make an admin role and a base database that it owns.

        Args:
            statements: run in the base as the admin.
            closed_to_public: nobody but the admin may connect. A server shared by parallel tests
                needs that: with an open base of another test in reach, no branch is isolated.
        """
        tag = secrets.token_hex(6)
        base = PostgresBase(self, f"base_{tag}", f"admin_{tag}", secrets.token_hex(16))
        name, admin = sql.Identifier(base.name), sql.Identifier(base.admin)
        role = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD {}")
        with self.connect() as session:
            session.execute(role.format(admin, sql.Literal(base.password)))
            if session.info.server_version >= 160000:
                # From 16 on CREATEROLE alone may not hand the right on to a branch's reader.
                grant = sql.SQL("GRANT pg_read_all_data TO {} WITH ADMIN OPTION")
                session.execute(grant.format(admin))
            create = sql.SQL("CREATE DATABASE {} OWNER {} ALLOW_CONNECTIONS false")
            session.execute(create.format(name, admin))
            if closed_to_public:
                session.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
            allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true")
            session.execute(allow.format(name))
        if statements:
            base.execute(*statements)
        return base

    def drop_base(self, base: PostgresBase) -> None:
        """Drop the base, its admin, and what the admin still owns through roles that it made.

        A failed test may leave branches; whether one did is for the test itself to assert.
        """
        with self.connect() as session:
            family = _family(session, base.admin)
            owned = session.execute(
                "SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) = ANY(%s)",
                [family],
            ).fetchall()
            names = {base.name} | {str(row[0]) for row in owned}
            for name in map(sql.Identifier, sorted(names)):
                session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
            roles = sql.SQL(", ").join(map(sql.Identifier, family))
            session.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(roles))
            session.execute(sql.SQL("DROP ROLE {}").format(roles))


def _family(session: psycopg.Connection[Any], admin: str) -> list[str]:
    """The admin and every role of ours that it is a member of, at any depth."""
    found = session.execute(
        """
        WITH RECURSIVE family AS (
            SELECT oid FROM pg_roles WHERE rolname = %s
            UNION
            SELECT granted.roleid FROM pg_auth_members granted JOIN family ON member = family.oid
        )
        SELECT rolname FROM pg_roles JOIN family USING (oid)
        WHERE NOT rolsuper AND rolname NOT LIKE 'pg\\_%%'
        """,
        [admin],
    )
    return [str(row[0]) for row in found]


class PostgresProcess(ServerProcess):
    """PostgreSQL from Debian's package on a data folder of its own; clusters of Debian's stay."""

    name = "PostgreSQL"
    account = "postgres"
    end_signal = signal.SIGINT  # fast shutdown: sessions are ended, not awaited
    death_signal = "QUIT"

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        """Nothing happens yet.

        Args:
            folder: for the data.
            settings: of the server, over ours.
        """
        super().__init__(folder)
        self._programs = require(POSTGRES)
        self._settings = SETTINGS | (settings or {})
        self._password = secrets.token_hex(16)

    @property
    def server(self) -> PostgresServer:
        """How to get in; stays the same over a restart."""
        data, log = self.folder / "data", self.log_file
        return PostgresServer(HOST, self.port, self._password, data, log)

    def prepare(self) -> None:
        """Make the data folder with initdb."""
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self._password)
        if os.geteuid() == 0:
            shutil.chown(secret, self.account, self.account)
        options = ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]
        access = [f"--username={SUPERUSER}", f"--pwfile={secret}", "--auth=scram-sha-256"]
        initdb = str(self._programs / "initdb")
        self.run_as_account([initdb, *options, *access, str(self.folder / "data")])
        secret.unlink()

    def command(self) -> list[str]:
        """The postmaster itself, in the foreground."""
        given = [f"-c{name}={value}" for name, value in self._settings.items()]
        data = str(self.folder / "data")
        return [str(self._programs / "postgres"), "-D", data, "-p", str(self.port), *given]

    def answers(self) -> bool:
        """Whether the superuser gets in."""
        try:
            with self.server.connect():
                return True
        except psycopg.OperationalError:
            return False
