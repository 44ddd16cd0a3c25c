"""The only reader of a set's files: relative paths below the root, never through a link, bounded.

Every component is opened from its parent's handle without following links, so a tree that is
changed meanwhile can't lead outside. Devices, pipes and sockets are never opened for reading.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from proctor_grader.errors import UserError
from proctor_grader.formats.paths import escapes, is_relative, segments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

MEBIBYTE = 1024 * 1024
MAX_TEXT_BYTES = 8 * MEBIBYTE
MAX_SET_BYTES = 512 * MEBIBYTE
"""All that is read of one set together."""
MAX_WALK_ENTRIES = 1_000_000
MAX_WALK_DEPTH = 100

_BOM = "\ufeff"
_FOLDER_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EIO})


class FaultKind(Enum):
    """Why a file of the set can't be had."""

    NOT_RELATIVE = "path must be repo-relative"
    ESCAPES = "path escapes the eval repo"
    LINK = "symlinked paths are not allowed"
    MISSING = "missing"
    DENIED = "permission denied"
    TOO_LARGE = "too large"
    NOT_UTF8 = "not valid UTF-8"


@dataclass(frozen=True, slots=True)
class FileFault:
    """One path's fault; a path has at most one.

    Attributes:
        path: as written.
        detail: more about it, for people; may be empty.
    """

    kind: FaultKind
    path: str
    detail: str = ""

    @property
    def refusal(self) -> str:
        """The message of a path that isn't even looked at or is a link; empty for the others.

        Source: eval-json format, P1 to P4.
        """
        if self.kind in {FaultKind.NOT_RELATIVE, FaultKind.ESCAPES, FaultKind.LINK}:
            return f"{self.kind.value}: {self.path}"
        return ""


class SetFiles(Protocol):
    """What a format may ask about the files of its set."""

    def read_text(self, path: str) -> str | FileFault:
        """Return a text file's content without a leading byte order mark."""

    def find(self, path: str) -> FileFault | None:
        """Return why the path names no readable regular file, None if it does."""


class Repo:
    """An open set (or project tree); use as a context manager."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Open the folder; the root itself may be reached through a link.

        Raises:
            UserError: there is no such folder, or it can't be read.
        """
        self._left = MAX_SET_BYTES
        try:
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self.names = frozenset(os.listdir(self._root))
            except OSError:
                os.close(self._root)
                raise
        except (OSError, ValueError) as error:
            raise cannot_read(root, error) from error

    def __enter__(self) -> Repo:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._root)

    def read_text(self, path: str, limit: int = MAX_TEXT_BYTES) -> str | FileFault:
        """Return a text file's content without a leading byte order mark."""
        content = self.read_bytes(path, limit)
        if isinstance(content, FileFault):
            return content
        try:
            return content.decode("utf-8").removeprefix(_BOM)
        except UnicodeDecodeError:
            return FileFault(FaultKind.NOT_UTF8, path)

    def read_bytes(self, path: str, limit: int = MAX_TEXT_BYTES) -> bytes | FileFault:
        """Return a file's content, at most `limit` bytes of it: a larger one is a fault."""
        file = self._open(path)
        if isinstance(file, FileFault):
            return file
        try:
            content = _read_at_most(file, limit)
        except OSError as error:
            return FileFault(FaultKind.DENIED, path, _reason(error))
        finally:
            os.close(file)
        if content is None:
            return FileFault(FaultKind.TOO_LARGE, path, f"larger than {limit // MEBIBYTE} MiB")
        self._left -= len(content)
        if self._left < 0:
            together = f"the set's files together exceed {MAX_SET_BYTES // MEBIBYTE} MiB"
            return FileFault(FaultKind.TOO_LARGE, path, together)
        return content

    def find(self, path: str) -> FileFault | None:
        """Return why the path names no readable regular file, None if it does."""
        file = self._open(path)
        if isinstance(file, FileFault):
            return file
        os.close(file)
        return None

    def walk(self, under: str = "", *, hidden: bool = False) -> Iterator[str]:
        """Yield the regular files below a folder, folder by folder, each folder's in name order.

        Links are passed over, and so are names that begin with a dot unless `hidden` is asked for.

        Raises:
            UserError: more than `MAX_WALK_ENTRIES` entries, or folders nested too deep.
        """
        waiting = [under]
        left = MAX_WALK_ENTRIES
        while waiting:
            folder = waiting.pop()
            inner = []
            for name, is_folder in self._entries(folder):
                left -= 1
                path = f"{folder}/{name}" if folder else name
                if left < 0 or path.count("/") > MAX_WALK_DEPTH:
                    raise UserError(
                        f"there are more than {MAX_WALK_ENTRIES} files or {MAX_WALK_DEPTH} levels"
                        " of folders below it",
                        where=folder or ".",
                        remedy="name the folder of the eval set itself, or give its format",
                    )
                if name.startswith(".") and not hidden:
                    continue
                if is_folder:
                    inner.append(path)
                else:
                    yield path
            waiting.extend(reversed(inner))

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        """Names of regular files and folders with whether they are folders, sorted by name."""
        try:
            handle = self._open_folder(segments(folder) if folder else [])
        except OSError:
            return []
        try:
            listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        except OSError:
            return []
        finally:
            self._close_folder(handle)
        try:
            with os.scandir(listing) as entries:
                found = [
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
                ]
        finally:
            os.close(listing)
        return sorted(found)

    def _open(self, path: str) -> int | FileFault:
        """Open a regular file for reading, or say why not."""
        if not is_relative(path):
            return FileFault(FaultKind.NOT_RELATIVE, path)
        if escapes(path):
            return FileFault(FaultKind.ESCAPES, path)
        *folders, name = segments(path)
        try:
            folder = self._open_folder(folders)
        except OSError as error:
            return _fault(path, error)
        try:
            return _open_regular(folder, name)
        except OSError as error:
            return _fault(path, error)
        finally:
            self._close_folder(folder)

    def _open_folder(self, names: list[str]) -> int:
        """Walk down from the root; the handle found is the caller's to give back.

        Raises:
            OSError: with ELOOP where a component is a link.
        """
        folder = self._root
        for name in names:
            try:
                inner = os.open(_raw(name), _FOLDER_FLAGS, dir_fd=folder)
            except NotADirectoryError:
                # Linux says "not a directory" of a link too, when only folders are asked for.
                mode = os.lstat(_raw(name), dir_fd=folder).st_mode
                if stat.S_ISLNK(mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                raise
            finally:
                self._close_folder(folder)
            folder = inner
        return folder

    def _close_folder(self, handle: int) -> None:
        if handle != self._root:
            os.close(handle)


def cannot_read(path: str | os.PathLike[str], error: Exception) -> UserError:
    """Say why a folder or file that the user named can't be opened, and what to do."""
    what = _reason(error) if isinstance(error, OSError) else "is no path"
    return UserError(
        f"cannot be read as an eval set: {what}",
        where=os.fspath(path).replace("\0", "\\0"),
        remedy="give the folder of an eval set, or its eval.json",
    )


def _raw(name: str) -> bytes:
    """Names are UTF-8 whatever the locale; those that are not came from a listing as surrogates."""
    return name.encode("utf-8", "surrogateescape")


def _reason(error: OSError) -> str:
    return (error.strerror or "input/output error").lower()


def _open_regular(folder: int, name: str) -> int:
    """Open without blocking; what is no regular file isn't opened at all."""
    target = _raw(name)
    mode = os.lstat(target, dir_fd=folder).st_mode
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(mode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    file = os.open(target, _FILE_FLAGS, dir_fd=folder)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)  # swapped since it was looked at
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _fault(path: str, error: OSError) -> FileFault:
    if error.errno == errno.ELOOP:
        return FileFault(FaultKind.LINK, path)
    if error.errno in _DENIED:
        return FileFault(FaultKind.DENIED, path, _reason(error))
    return FileFault(FaultKind.MISSING, path)


def _read_at_most(file: int, limit: int) -> bytes | None:
    """Return the whole content; None when it is longer, even if it only grows meanwhile."""
    size = os.fstat(file).st_size
    if size > limit:
        return None
    parts: list[bytes] = []
    total = 0
    while part := os.read(file, size + 1 if total == 0 else MEBIBYTE):
        parts.append(part)
        total += len(part)
        if total > limit:
            return None
    return b"".join(parts)
