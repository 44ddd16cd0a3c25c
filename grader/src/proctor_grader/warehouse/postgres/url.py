"""Where a base lies and how its admin gets in; the URLs of its branches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg
from psycopg import conninfo

from proctor_grader.errors import UserError

FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_DEFAULT_PORT = "5432"
_TLS_MODES = {"verify-ca", "verify-full"}
# what makes sense on another machine: no path, no client certificate
_PORTABLE = ("sslmode", "channel_binding", "sslnegotiation", "gssencmode")


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
            portable: the URL is used on another machine, where the admin's certificate files
                are not: TLS stays required, the server's certificate is not checked.
        """
        given = {
            name: value
            for name, value in self.parameters.items()
            if name.startswith(("ssl", "gss", "channel")) and name != "sslpassword"
        }
        given.pop("sslkey", None)
        given.pop("sslcert", None)
        if portable:
            own_authority = given.get("sslrootcert") == "system"
            if given.get("sslmode") in _TLS_MODES and not own_authority:
                given["sslmode"] = "require"
            kept = {*_PORTABLE, "sslrootcert"} if own_authority else set(_PORTABLE)
            given = {name: value for name, value in given.items() if name in kept}
        query = "&".join(f"{name}={quote(given[name], safe='')}" for name in sorted(given))
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        path = quote(database, safe="")
        return f"postgresql://{who}@{self._address}/{path}{'?' if query else ''}{query}"

    @property
    def _address(self) -> str:
        host = self.parameters.get("host") or "localhost"
        if host.startswith("/"):
            host = quote(host, safe="")
        elif ":" in host:
            host = f"[{host}]"
        return f"{host}:{self.parameters.get('port') or _DEFAULT_PORT}"


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
    return Target(parameters, base)


def _malformed(what: str) -> UserError:
    return UserError(
        f"the warehouse's URL {what} (expected {FORM})",
        remedy="percent-encode special characters of user and password, e.g. '@' as %40",
    )
