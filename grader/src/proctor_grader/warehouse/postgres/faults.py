"""Whose fault a PostgreSQL error is: the user's, the server's, or what stands on the branch.

Errors of a running session are told apart by SQLSTATE. Errors of connecting carry none (libpq
does not hand it out), so they are told apart by words, with "the server's" as the fallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.errors import BranchError, ProctorError, QueryError, UserError, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

QUERY_TIMEOUT = "QueryTimeout"
OUT_OF_MEMORY = "OutOfMemory"
DISK_FULL = "DiskFull"

TIMEOUT = "57014"
IN_USE = "55006"
DEPENDENT = "2BP01"
LOCK_TIMEOUT = "55P03"
NO_PRIVILEGE = "42501"

_MAX_MESSAGE = 1000
# connection, resources, operator's intervention, system and corruption; 28 is authorization
_SERVER_CLASSES = {"08", "28", "53", "58"}
_SERVER_STATES = {"57P01", "57P02", "57P03", "57P04", "57P05", "XX001", "XX002", "40001", "40P01"}
_REASONS = {"53200": OUT_OF_MEMORY, "53100": DISK_FULL}
# what stays wrong until somebody changes the base, the rights or a name
_LASTING_CLASSES = {"0A", "22", "3D", "42"}

_REFUSED = {
    "password authentication failed": "check user and password",
    "no password supplied": "put the password into the URL",
    "authentication failed": "check user and password",
    "no pg_hba.conf entry": "admit this role from this address in the server's pg_hba.conf",
    "pg_hba.conf rejects": "admit this role from this address in the server's pg_hba.conf",
    "is not permitted to log in": "use a role with LOGIN",
    "permission denied for database": "use a role that may CONNECT to it",
    "is not currently accepting connections": "take a clone of it, as a run does",
    "certificate verify failed": "give the server's certificate authority as sslrootcert",
    "root certificate file": "give the server's certificate authority as sslrootcert",
    "does not support SSL": "use another sslmode",
    "does not exist": "check database and user",
}
_NOT_FOUND = ("Connection refused", "failed to resolve", "timeout expired", "No route to host")


def connect_fault(error: psycopg.Error, *, where: str, secrets: Iterable[str]) -> ProctorError:
    """Return the error to raise for one of connecting as the admin."""
    message = first_line(str(error), secrets).removeprefix("connection failed: ")
    for words, remedy in _REFUSED.items():
        if words in message:
            return UserError(message, where=where, remedy=remedy, reason="WarehouseRefused")
    is_away = any(words in message for words in _NOT_FOUND)
    remedy = "check host and port, and that the server is up" if is_away else ""
    return WarehouseError(message, where=where, remedy=remedy)


def admin_fault(error: psycopg.Error, *, where: str) -> ProctorError:
    """Return the error to raise for one of an admin's statement."""
    message, state = told(error), error.sqlstate or ""
    if state[:2] in _LASTING_CLASSES:
        return BranchError(message, where=where)
    return WarehouseError(message, where=where, reason=_REASONS.get(state))


def query_fault(error: psycopg.Error | UnicodeError, *, timeout_seconds: float) -> ProctorError:
    """Return the error to raise for one of a grader's question to a branch."""
    state = getattr(error, "sqlstate", None)
    if isinstance(error, UnicodeError):
        return QueryError("the result is not valid UTF-8")
    if state == TIMEOUT:
        return QueryError(f"the query took over {timeout_seconds:g} s", reason=QUERY_TIMEOUT)
    if is_servers(error):
        return WarehouseError(told(error), reason=_REASONS.get(state or ""))
    return QueryError(told(error))


def is_servers(error: psycopg.Error) -> bool:
    """Whether connection, authorization or resources failed rather than what was asked."""
    state = error.sqlstate
    if state is None:
        return True
    if error.diag.source_function == "exec_stmt_raise":
        return False  # a function's RAISE: it may name any SQLSTATE
    return state[:2] in _SERVER_CLASSES or state in _SERVER_STATES


def told(error: psycopg.Error) -> str:
    """Return the server's message and detail, without the excerpt of our own SQL."""
    primary = error.diag.message_primary
    if primary is None:
        return first_line(str(error), ())
    detail = error.diag.message_detail
    return (f"{primary} ({detail})" if detail else primary)[:_MAX_MESSAGE]


def first_line(message: str, secrets: Iterable[str]) -> str:
    """Return a message's first line without the secrets, which libpq may quote."""
    text = message.strip().partition("\n")[0].strip()
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:_MAX_MESSAGE]
