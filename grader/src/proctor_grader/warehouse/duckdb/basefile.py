"""The base: the database file that branches are copied from. It is never written to."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from proctor_grader.errors import BaseBusy, UserError
from proctor_grader.warehouse.duckdb.files import held_against_writers, is_open_here

_URL_PREFIX = "duckdb:///"
_MAGIC = b"DUCK"
_MAGIC_AT = 8


def path_of(url: str) -> Path:
    """Return the absolute path of the file that a URL of this engine, or a bare path, names."""
    is_url = url[: len(_URL_PREFIX)].lower() == _URL_PREFIX
    return Path(os.path.abspath(url[len(_URL_PREFIX) :] if is_url else url))


def check_file(path: Path) -> None:
    """Make sure that a base is a database file that nobody writes to just now.

    Raises:
        UserError: it isn't; what to do is said.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise UserError("is not a file", where=str(path), reason="BaseInvalid")
        # a second handle of ours would drop the engine's lock when it is closed
        if is_open_here(path):
            return
        with held_against_writers(path) as handle:
            start = os.pread(handle, _MAGIC_AT + len(_MAGIC), 0)
    except OSError as error:
        raise _unreadable(error, path) from error
    except BaseBusy as error:
        raise UserError(
            error.message, where=error.where, remedy=error.remedy, reason="BaseLocked"
        ) from error
    if start[_MAGIC_AT:] != _MAGIC:
        raise UserError(
            "is empty" if not start else "is no DuckDB database",
            where=str(path),
            remedy="name a file that DuckDB has written",
            reason="BaseInvalid",
        )


def _unreadable(error: OSError, path: Path) -> UserError:
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return UserError(
            "there is no such file",
            where=str(path),
            remedy="check the path; a relative one starts at the current folder",
            reason="BaseMissing",
        )
    return UserError(
        f"can't be read: {error.strerror}",
        where=str(path),
        remedy="give the user who runs Proctor the right to read it",
        reason="BaseUnreadable",
    )
