"""What an error of the operating system means to Proctor: who has to act, and how."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

from proctor_grader.errors import ProctorError, StoreError, StoreFull, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM}
# EXDEV: another file system is mounted inside of the store.
_OCCUPIED = {errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST, errno.EXDEV}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@contextlib.contextmanager
def reported(where: str) -> Iterator[None]:
    """Turn an `OSError` into the error that says who has to act.

    Args:
        where: the file or key that is worked on.
    """
    try:
        yield
    except OSError as error:
        raise fault_of(error, where) from error


def fault_of(error: OSError, where: str) -> ProctorError:
    """Name what an `OSError` in a store's folder means."""
    words = (error.strerror or type(error).__name__).lower()
    if error.errno in _FULL:
        remedy = "free some space, or choose another place"
        return StoreFull(f"there is no room left ({words})", where=where, remedy=remedy)
    if error.errno in _FORBIDDEN:
        remedy = "give this user read and write permission there, or choose another place"
        return UserError(
            f"access is refused ({words})", where=where, remedy=remedy, reason="AccessDenied"
        )
    if error.errno == errno.EROFS:
        remedy = "choose a place that can be written"
        return UserError(
            "lies on a read-only file system", where=where, remedy=remedy, reason="AccessDenied"
        )
    if error.errno in _OCCUPIED:
        remedy = "remove what is in the way, or choose another place"
        return UserError(
            f"a file, folder, link or mount is in the way ({words})",
            where=where,
            remedy=remedy,
            reason="InvalidStore",
        )
    if error.errno == errno.ENAMETOOLONG:
        remedy = "choose a place with a shorter path"
        return UserError("the path is too long", where=where, remedy=remedy, reason="InvalidStore")
    return StoreError(f"can't be read or written ({words})", where=where)


def lacks_links(error: OSError) -> bool:
    """Whether a refused hard link means that the file system has none at all."""
    return error.errno in _NO_LINKS
