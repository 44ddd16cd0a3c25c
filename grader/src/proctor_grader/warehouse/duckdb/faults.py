"""Whose fault a DuckDB error is: what stands on the branch, or Proctor's own means.

DuckDB's exceptions carry no error numbers, so a few are told apart by the operating system's
words in their text; everything that is not known to be ours is the branch's.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from proctor_grader.errors import QueryError, StoreFull, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from proctor_grader.errors import ProctorError
    from proctor_grader.warehouse.duckdb.watchdog import Deadline

ENGINE_ERRORS = (duckdb.Error, MemoryError, RuntimeError, UnicodeDecodeError)
QUERY_TIMEOUT = "QueryTimeout"
OUT_OF_MEMORY = "OutOfMemory"
LOCKED = "Locked"
DISK_FULL = "DiskFull"

_NO_ROOM_CODES = (errno.ENOSPC, errno.EDQUOT)
_NO_ROOM = tuple(map(os.strerror, _NO_ROOM_CODES))
_OUR_MEANS = tuple(
    map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.EIO, errno.EACCES, errno.EPERM))
)
_LOCK = "Could not set lock on file"
_CTRL_C = "Query interrupted"
_MAX_MESSAGE = 1000


def fault_of(error: BaseException, *, folder: str = "") -> ProctorError:
    """Return the error to raise for one that DuckDB raised.

    Args:
        error: one of `ENGINE_ERRORS`.
        folder: a working folder whose path means nothing to people; left out of the message.
    """
    message = told(error, folder=folder)
    if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
        return WarehouseError(message, reason=OUT_OF_MEMORY)
    # of this class alone: an agent's view may raise others with words of its own choice
    if isinstance(error, duckdb.IOException):
        if any(words in message for words in _NO_ROOM):
            return WarehouseError(f"no room on the disk: {message}", reason=DISK_FULL)
        if _LOCK in message:
            return WarehouseError(message, reason=LOCKED)
        if any(words in message for words in _OUR_MEANS):
            return WarehouseError(message)
    if isinstance(error, duckdb.ConnectionException):
        return WarehouseError(message)
    return QueryError(message)


def no_room(error: OSError, path: Path) -> StoreFull | None:
    """Return the error to raise for a full disk, None for any other error."""
    if error.errno not in _NO_ROOM_CODES:
        return None
    return StoreFull(
        f"no room on the disk: {error.strerror}", where=str(path), remedy="make room there"
    )


def told(error: BaseException, *, folder: str = "") -> str:
    """Return DuckDB's message without the excerpt of our own SQL and without `folder`."""
    text = str(error).partition("\n\n")[0].strip() or type(error).__name__
    return (text.replace(f"{folder}/", "") if folder else text)[:_MAX_MESSAGE]


@contextmanager
def faults_told(deadline: Deadline, *, folder: str = "") -> Iterator[None]:
    """Raise `QueryError` or `WarehouseError` for what DuckDB raises within a deadline."""
    try:
        with deadline:
            yield
    except ENGINE_ERRORS as error:
        if deadline.passed:
            raise QueryError(
                f"the query took over {deadline.seconds:g} s and was ended", reason=QUERY_TIMEOUT
            ) from error
        if isinstance(error, RuntimeError) and str(error) == _CTRL_C:
            raise KeyboardInterrupt from error
        raise fault_of(error, folder=folder) from error
