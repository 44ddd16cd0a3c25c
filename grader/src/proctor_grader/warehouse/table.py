"""The one table of engines: URL -> engine. An engine's package is imported when it is used."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import urlsplit

from proctor_grader.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from proctor_grader.warehouse.base import (
        AdapterOptions,
        BranchAdapter,
        StatementResult,
        Warehouse,
    )

DUCKDB = "duckdb"
POSTGRES = "postgres"
ENGINES = {
    DUCKDB: "proctor_grader.warehouse.duckdb",
    POSTGRES: "proctor_grader.warehouse.postgres",
}
FORMS = (
    "duckdb:///relative.duckdb, duckdb:////absolute.duckdb, a path that ends in .duckdb"
    " or postgresql://user:password@host/base"
)
_SCHEMES = {"postgresql": POSTGRES, "postgres": POSTGRES, "duckdb": DUCKDB}
_DUCKDB_PREFIX = "duckdb:///"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_USER_INFO = re.compile(r"(?<=://)([^:@/?#]*)(:?).*@", re.DOTALL)
_SECRET_PARAMETER = re.compile(
    r"(?i)\b(\w*(?:password|passfile|secret|token)\s*=\s*)('[^']*'|[^\s&]*)"
)


class _Engine(Protocol):
    """What every engine's package offers."""

    def open_adapter(self, url: str, options: AdapterOptions) -> BranchAdapter: ...

    def open_base_reader(self, url: str) -> AbstractContextManager[Warehouse]: ...

    def execute(self, dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]: ...


def engine_of(url: str) -> str:
    """Return the engine that a warehouse's URL names, without looking for the warehouse.

    Raises:
        UserError: the URL has none of the accepted forms.
    """
    scheme = _SCHEME.match(url)
    if _CONTROL.search(url):
        raise _refused(url, "holds a control character")
    if scheme is None:
        if url.endswith(".duckdb") and not url.startswith("duckdb:"):
            return DUCKDB
        raise _refused(url, "is no warehouse's URL")
    engine = _SCHEMES.get(scheme[1].lower())
    if engine is None:
        raise _refused(url, f"names the unknown engine '{scheme[1]}'")
    if engine == DUCKDB:
        if url[: len(_DUCKDB_PREFIX)].lower() != _DUCKDB_PREFIX or url.endswith("/"):
            raise _refused(url, "names no file")
    else:
        _check_server(url)
    return engine


def _check_server(url: str) -> None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:
        # without the cause: its words may quote the part with the password
        raise _refused(url, "is malformed") from None
    if not parts.path.strip("/"):
        raise _refused(url, "names no database")


def _refused(url: str, what: str) -> UserError:
    return UserError(what, where=f"warehouse '{shown_url(url)}'", remedy=f"write it as {FORMS}")


def shown_url(url: str) -> str:
    """Return a warehouse's URL for people: without password, whatever else is wrong with it."""
    if url[: len(_DUCKDB_PREFIX)].lower() == _DUCKDB_PREFIX:
        return url
    hidden = _USER_INFO.sub(lambda found: f"{found[1]}{':***' if found[2] else ''}@", url)
    return _SECRET_PARAMETER.sub(r"\1***", hidden)


def open_adapter(url: str, options: AdapterOptions) -> BranchAdapter:
    """Open what makes and drops branches of the base that the URL names.

    Raises:
        UserError: the URL is malformed, or there is no usable base behind it.
        WarehouseError: the server can't be reached.
    """
    return _engine(engine_of(url)).open_adapter(url, options)


def open_local_leftovers(options: AdapterOptions) -> BranchAdapter:
    """Open what finds and drops branches that are files on this machine, whatever their base."""
    from proctor_grader.warehouse.duckdb import open_leftovers  # noqa: PLC0415 - imported late

    return open_leftovers(options)


def is_local(url: str) -> bool:
    """Whether a warehouse's branches are files on this machine.

    Args:
        url: or what an adapter calls its location, for a file its absolute path.
    """
    if url.startswith("/"):
        return True
    try:
        return engine_of(url) == DUCKDB
    except UserError:
        return False


def open_base_reader(url: str) -> AbstractContextManager[Warehouse]:
    """Open a read-only view of a base itself; closes on exit.

    Raises:
        UserError: the URL is malformed, or there is no usable base behind it.
        WarehouseError: the base can't be reached.
    """
    return _engine(engine_of(url)).open_base_reader(url)


def execute(dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]:
    """Run statements on a branch with the rights of its DSN, one after the other, in one session.

    A statement runs when its result is asked for; a caller that stops asking stops the rest.

    Args:
        dsn: a branch's `agent_dsn`: a URL, or the absolute path of a DuckDB file.
        statements: one statement each; every one is committed by itself.

    Raises:
        WarehouseError: the branch can't be reached.
    """
    return _engine(DUCKDB if dsn.startswith("/") else engine_of(dsn)).execute(dsn, statements)


def _engine(name: str) -> _Engine:
    return cast("_Engine", import_module(ENGINES[name]))
