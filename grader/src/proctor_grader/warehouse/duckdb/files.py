"""Database files as files: copied, linked and looked at without ever opening one in the engine.

Closing any handle of a file drops the locks that this process holds on it, the engine's own
included. So a file that the engine may have open here is never opened by other means.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from proctor_grader.errors import BaseBusy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = ("", ".wal", ".wal.checkpoint", ".wal.recovery")
"""A database's files: itself, its write-ahead log, and that log while a checkpoint is under way."""

_CLONE = 0x40049409  # FICLONE: shares the blocks where the file system can
_CHUNK_BYTES = 1 << 20
_LOCK = struct.Struct("hhqqi4x")
_NO_COPY_IN_KERNEL = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


class FileChanged(Exception):
    """A file changed while it was copied."""


def open_regular(path: Path | str, *, dir_fd: int | None = None, follow: bool = False) -> int:
    """Open a file for reading that must be a regular one; never waits, whatever it is.

    Raises:
        OSError: it is missing or unreadable; EINVAL: it is no regular file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def is_open_here(path: Path) -> bool:
    """Whether this very process has the file open; found without opening it."""
    looked_for = path.stat()
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found = os.stat(f"/proc/self/fd/{handle}")
            if (found.st_dev, found.st_ino) == (looked_for.st_dev, looked_for.st_ino):
                return True
    return False


@contextmanager
def held_against_writers(path: Path) -> Iterator[int]:
    """Keep other processes from writing to a database while the block copies or looks at it.

    Yields a handle for reading. Where the file system knows no locks the block runs all the same.

    Raises:
        BaseBusy: a process has it open for writing, or this very process has it open.
        OSError: it is missing or unreadable, or no regular file (EINVAL).
    """
    if is_open_here(path):
        raise BaseBusy("is being read in this very process", where=str(path))
    handle = open_regular(path, follow=True)
    try:
        _lock_shared(handle, path)
        yield handle
    finally:
        os.close(handle)


def _lock_shared(handle: int, path: Path) -> None:
    # a lock of the open file, not of the process: the engine's own kind would not conflict here
    wanted = _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return
        holder = _LOCK.unpack(fcntl.fcntl(handle, fcntl.F_GETLK, wanted))[-1]
        raise BaseBusy(
            f"is open for writing in {_process(holder)}",
            where=str(path),
            remedy="close it there and try again",
        ) from error


def _process(pid: int) -> str:
    if pid <= 0:
        return "another process"
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return f"the process {pid}"
    return f"'{program}' (process {pid})"


def copy_database(source: Path, folder: Path) -> Path:
    """Copy a database with its log into an empty folder, under its own name.

    Returns:
        The copy's path.

    Raises:
        FileChanged: a file changed meanwhile; what was copied must be thrown away.
        BaseBusy: as `held_against_writers`.
        OSError: reading or writing failed.
    """
    with held_against_writers(source) as handle:
        before = _states(source)
        _copy_handle(handle, folder / source.name)
        _copy_logs(source, folder)
        if _states(source) != before:
            raise FileChanged(str(source))
    return folder / source.name


def copy_untouched(source: Path, folder: Path) -> Path:
    """Copy a database that nobody ever writes to; as `copy_database`, without a lock.

    The engine may have it open here: a lock that it loses keeps nobody out.
    """
    copy_file(source, folder / source.name)
    _copy_logs(source, folder)
    return folder / source.name


def _copy_logs(source: Path, folder: Path) -> None:
    for suffix in SUFFIXES[1:]:
        with suppress(FileNotFoundError):
            copy_file(_beside(source, suffix), folder / f"{source.name}{suffix}")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")


def _states(path: Path) -> list[tuple[int, ...] | None]:
    states: list[tuple[int, ...] | None] = []
    for suffix in SUFFIXES:
        try:
            found = _beside(path, suffix).stat()
        except FileNotFoundError:
            states.append(None)
        else:
            states.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))
    return states


def size_of_database(path: Path) -> int:
    """Bytes of a database and its log; files that are missing count nothing."""
    return sum(state[2] for state in _states(path) if state)


def copy_file(source: Path | str, target: Path, *, dir_fd: int | None = None) -> None:
    """Copy a regular file to a new one, sharing blocks where the file system can."""
    handle = open_regular(source, dir_fd=dir_fd, follow=dir_fd is None)
    try:
        _copy_handle(handle, target)
    finally:
        os.close(handle)


def _copy_handle(source: int, target: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    made = os.open(target, flags, 0o600)
    try:
        try:
            fcntl.ioctl(made, _CLONE, source)
        except OSError:
            _copy_bytes(source, made)
    finally:
        os.close(made)


def _copy_bytes(source: int, made: int) -> None:
    try:
        while os.copy_file_range(source, made, 1 << 30):
            pass
    except OSError as error:
        if error.errno not in _NO_COPY_IN_KERNEL:
            raise
        while chunk := os.pread(source, _CHUNK_BYTES, os.lseek(made, 0, os.SEEK_CUR)):
            _write_all(made, chunk)


def _write_all(handle: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(handle, view) :]


def link_database(folder: Path, name: str, into: Path) -> None:
    """Link a database with its log into another folder of the file system, opening neither.

    The folder is an agent's: everything in it may be something else than it was.

    Raises:
        NotADatabaseFile: what lies there under the name is no regular file, or nothing.
        OSError: linking failed for other reasons.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NotADatabaseFile("the database's folder is gone") from None
    try:
        for suffix in SUFFIXES:
            _link_one(handle, f"{name}{suffix}", into, is_needed=not suffix)
    finally:
        os.close(handle)


_OURS_AND_THE_BRANCHES = 2
"""Names of a file that nobody linked anywhere else."""


class NotADatabaseFile(Exception):
    """Where a database should lie there is something else; the text says what."""


def _link_one(folder: int, name: str, into: Path, *, is_needed: bool) -> None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if is_needed:
            raise NotADatabaseFile(f"the database file '{name}' is gone") from None
        return
    if not stat.S_ISREG(found.st_mode):
        raise NotADatabaseFile(f"'{name}' is {_kind(found.st_mode)}, not a file")
    target = into / name
    try:
        os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP}:
            raise
        copy_file(name, target, dir_fd=folder)
    else:
        _give_back_rights(target, found)


def _give_back_rights(target: Path, expected: os.stat_result) -> None:
    """Let us read what an agent may have closed, if it is the branch's own file and nothing else.

    The name may have become a link in the meantime, or the file may have another name anywhere on
    the host: neither is followed, and neither is changed.

    Raises:
        NotADatabaseFile: the name leads to something else by now.
    """
    handle = os.open(target, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_ino != expected.st_ino:
            raise NotADatabaseFile(f"'{target.name}' was replaced by {_kind(found.st_mode)}")
        if found.st_nlink == _OURS_AND_THE_BRANCHES:
            with suppress(PermissionError):
                os.chmod(f"/proc/self/fd/{handle}", 0o600)
    finally:
        os.close(handle)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFREG: "another file",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
