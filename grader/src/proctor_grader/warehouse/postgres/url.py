"""Where a base lies and how its admin gets in; the URLs of its branches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg
from psycopg import conninfo

from proctor_grader.errors import UserError

FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_DEFAULT_HOST, _DEFAULT_PORT = "localhost", "5432"
_VERIFYING = {"verify-ca", "verify-full"}
# how to talk to the server; never who the admin is (its certificate, its service file)
_TRANSPORT = ("channel_binding", "gssencmode", "sslmode", "sslnegotiation", "sslrootcert")


@dataclass(frozen=True, slots=True)
class Target:
    """A base database and its admin.

    Attributes:
        parameters: as libpq takes them, the password among them; without the database.
        base: the database that branches are cloned from.
    """

    parameters: Mapping[str, str] = field(repr=False)
    base: str

    @property
    def location(self) -> str:
        """The base for people, without password."""
        user = self.parameters.get("user", "")
        who = f"{quote(user, safe='')}@" if user else ""
        return f"postgresql://{who}{self._address}/{quote(self.base, safe='')}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that may stand in no message."""
        named = ("password", "sslpassword")
        return tuple(text for name in named if (text := self.parameters.get(name)))

    def branch_url(self, database: str, user: str, password: str, *, portable: bool) -> str:
        """Return the URL by which a role reaches a database on the base's server.

        Args:
            database: any name.
            user: any role.
            password: of the role.
            portable: the URL is used where the file of the certificate authority is not: TLS
                stays required, but the server's certificate is not checked.
        """
        given = {name: self.parameters[name] for name in _TRANSPORT if name in self.parameters}
        if portable and given.get("sslrootcert", "system") != "system":
            del given["sslrootcert"]
            if given.get("sslmode") in _VERIFYING:
                given["sslmode"] = "require"
        query = "&".join(f"{name}={quote(given[name], safe='')}" for name in sorted(given))
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        path = quote(database, safe="")
        return f"postgresql://{who}@{self._address}/{path}{'?' if query else ''}{query}"

    @property
    def _address(self) -> str:
        host = self.parameters["host"]
        if host.startswith("/"):
            host = quote(host, safe="")
        elif ":" in host:
            host = f"[{host}]"
        return f"{host}:{self.parameters['port']}"


def parse_url(url: str) -> Target:
    """Read the URL of a base.

    Raises:
        UserError: it is no URL of one database on one server. Never quotes the URL: a password
            that is not percent-encoded may stand in any part of it.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise _malformed("names no PostgreSQL server")
    try:
        parameters = {
            name: str(value) for name, value in conninfo.conninfo_to_dict(url).items() if value
        }
    except (psycopg.Error, UnicodeError):
        # without the cause: libpq quotes the part of the URL that it did not understand
        raise _malformed("is malformed") from None
    base = parameters.pop("dbname", "")
    if not base:
        raise _malformed("names no database")
    host = parameters.get("host", "")
    if "@" in host:
        raise _malformed("has more than one '@'")
    if "," in host:
        raise _malformed("names more than one host")
    # said explicitly, since the URLs of branches must name the very server that the admin uses
    parameters.setdefault("host", parameters.pop("hostaddr", _DEFAULT_HOST))
    parameters.setdefault("port", _DEFAULT_PORT)
    return Target(parameters, base)


def _malformed(what: str) -> UserError:
    return UserError(
        f"the warehouse's URL {what} (expected {FORM})",
        remedy="percent-encode special characters of user and password, e.g. '@' as %40",
    )
