"""Removes a folder that an agent could write to, whatever it made of it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from contextlib import suppress
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING

from proctor_grader.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_IMMUTABLE_OR_APPEND_ONLY = 0x10 | 0x20
_FLAGS = struct.Struct("l")
_NAMES_AT_A_TIME = 10_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(path: Path, *, seconds: float) -> None:
    """Remove a folder and all in it, following no link. Missing is success.

    Folders inside are moved up to the top before they are emptied: no depth is too deep, no path
    too long, and no more than two are open at a time.

    Raises:
        TransientError: something resists, or time is over; what is gone stays gone.
    """
    try:
        parent = os.open(path.parent.resolve(), _FOLDER)
    except FileNotFoundError:
        return
    try:
        with suppress(FileNotFoundError):
            _Removal(time.monotonic() + seconds).remove(parent, path.name, None)
    except OSError as error:
        raise TransientError(
            f"can't be removed: {error.strerror} ({error.filename})",
            where=str(path),
            remedy="remove it by hand",
            reason="NotRemoved",
        ) from error
    finally:
        os.close(parent)


class _Removal:
    def __init__(self, until: float) -> None:
        self._until = until
        self._prefix = f".removed-{token_hex(8)}-"
        self._moved = 0

    def remove(self, folder: int, name: str, top: int | None) -> None:
        """Remove one entry; `top` is where folders within `folder` are moved, None at the start."""
        if time.monotonic() > self._until:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), name)
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            _insist(os.unlink, name, folder)
        elif top in (None, folder):
            self._empty(folder, name, top)
            _insist(os.rmdir, name, folder)
        else:
            os.close(_open_folder(folder, name))
            self._moved += 1
            os.rename(name, f"{self._prefix}{self._moved}", src_dir_fd=folder, dst_dir_fd=top)

    def _empty(self, parent: int, name: str, top: int | None) -> None:
        folder = _open_folder(parent, name)
        try:
            while names := _names(folder):
                for each in names:
                    with suppress(FileNotFoundError):
                        self.remove(folder, each, folder if top is None else top)
        finally:
            os.close(folder)


def _names(folder: int) -> list[str]:
    # a bounded number at a time: a folder may hold millions
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, _NAMES_AT_A_TIME)]


def _open_folder(parent: int, name: str) -> int:
    """Open a folder after making sure that we may read and change it."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        if os.fstat(handle).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            _allow_all(parent, name, handle)
    finally:
        os.close(handle)
    opened = os.open(name, _FOLDER, dir_fd=parent)
    _clear_flags(opened)
    return opened


def _allow_all(parent: int, name: str, handle: int) -> None:
    # through the handle, since nothing else changes a mode without following links
    path = f"/proc/self/fd/{handle}"
    try:
        os.chmod(path, stat.S_IRWXU)
    except PermissionError:
        readable = os.open(name, _FOLDER, dir_fd=parent)
        try:
            _clear_flags(readable)
        finally:
            os.close(readable)
        os.chmod(path, stat.S_IRWXU)


def _insist(action: Callable[..., None], name: str, folder: int) -> None:
    """Do it, if need be after taking flags off that refuse it even to their owner."""
    try:
        action(name, dir_fd=folder)
    except PermissionError:
        with suppress(OSError):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            try:
                _clear_flags(handle)
            finally:
                os.close(handle)
        action(name, dir_fd=folder)


def _clear_flags(handle: int) -> None:
    with suppress(OSError):
        (flags,) = _FLAGS.unpack(fcntl.ioctl(handle, _GET_FLAGS, _FLAGS.pack(0)))
        if flags & _IMMUTABLE_OR_APPEND_ONLY:
            fcntl.ioctl(handle, _SET_FLAGS, _FLAGS.pack(flags & ~_IMMUTABLE_OR_APPEND_ONLY))
