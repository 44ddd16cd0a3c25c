"""A folder tree that is walked name by name from a handle of its root.

A symbolic link below the root is never followed, whoever put it there and when. Bytes are written
to a file without a name, where the file system has such; what has to be copied or replaced is
drafted in `.tmp`. Both get their place at once. A draft that a killed process left is swept by a
later one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import threading
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from proctor_grader.errors import StoreError
from proctor_grader.store.handles import Folder, Handles
from proctor_grader.store.key import TEMPORARY, Names, is_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DRAFT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMELESS = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
_DRAFTS = (TEMPORARY,)
_UNSYNCED = 4096
_TRIES = 100
_ABANDONED_SECONDS = 60.0
_ABANDONED_UNLOCKABLE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Draft:
    """A file without a place yet."""

    folder: Folder
    name: str
    file: IO[bytes]


class Tree:
    """A folder tree; thread-safe, and safe beside other processes on the same folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._handles = Handles(str(root), self._note_unsynced)
        self._has_nameless = os.path.isdir("/proc/self/fd")
        self._swept = False
        # Folders in which this process made a folder that is not on disk for certain. A durable
        # write takes those above its file out again; of the others the oldest are forgotten.
        self._unsynced: dict[Names, None] = {}
        # Held by who removes empty folders, and by who lost one while putting a file into it.
        self._pruning = threading.Lock()

    def folder(self, names: Names, *, make: bool = False) -> Folder:
        """A handle of the folder that `names` lead to.

        Raises:
            OSError: ENOENT; ENOTDIR or ELOOP when a name is no folder.
            UserError: the root itself is no folder.
        """
        return self._handles.open(names, make=make)

    @contextlib.contextmanager
    def file(self, names: Names) -> Iterator[IO[bytes]]:
        """A regular file, open for reading.

        Raises:
            OSError: ENOENT also for what is no regular file, else as in `folder`.
        """
        folder = self.folder(names[:-1])
        handle = os.open(names[-1], _FILE, dir_fd=folder.fd)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, "is no regular file")
        with open(handle, "rb") as file:
            yield file

    def files(self, names: Names, start: str = "") -> Iterator[tuple[str, int]]:
        """Path and size of every regular file below a folder, in the byte order of the paths.

        Args:
            names: of the folder.
            start: what the first name below it starts with.
        """
        folder = self.folder(names)
        yield from _files(folder.fd, "".join(f"{name}/" for name in names), start)

    def folders(self, names: Names) -> Iterator[str]:
        """Names of the folders directly below a folder that have a file below them, sorted."""
        folder = self.folder(names)
        for name, is_folder in _entries(folder.fd, ""):
            if is_folder and _has_file(folder.fd, name):
                yield name

    def size(self, names: Names) -> int | None:
        """How large a file is; None when it is no regular file.

        Raises:
            OSError: as in `folder`.
        """
        folder = self.folder(names[:-1])
        found = os.stat(names[-1], dir_fd=folder.fd, follow_symlinks=False)
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def write(self, names: Names, data: bytes, *, new: bool = False, durable: bool = False) -> None:
        """Put bytes into a file; the folders above are made.

        Args:
            names: of the file.
            data: what.
            new: whether the place must be free, else `FileExistsError`.
            durable: whether it must survive a power failure.
        """
        if not self._write_nameless(names, data, new, durable):
            with self.draft() as draft:
                draft.file.write(data)
                self.place(draft, names, new=new, durable=durable)
        elif durable:
            self._sync_above(names[:-1])

    @contextlib.contextmanager
    def draft(self) -> Iterator[Draft]:
        """An empty file that is gone after the block unless `place` gave it a place."""
        folder = self._drafts()
        name = secrets.token_hex(8)
        handle = os.open(name, _DRAFT, 0o666, dir_fd=folder.fd)  # the umask decides
        try:
            with open(handle, "wb") as file:
                with contextlib.suppress(OSError):  # not every file system has locks
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield Draft(folder, name, file)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.fd)

    def place(
        self, draft: Draft, names: Names, *, new: bool = False, durable: bool = False
    ) -> None:
        """Give a draft its place; the folders above are made.

        Args:
            draft: as it is now.
            names: of the place.
            new: whether the place must be free, else `FileExistsError`.
            durable: whether it must survive a power failure.
        """
        draft.file.flush()
        if durable:
            os.fsync(draft.file.fileno())
        try:
            self._put(draft, names, new, durable)
        except FileNotFoundError:  # a delete removed the empty folder under our hands
            self._put_again(draft, names, new, durable)
        if durable:
            self._sync_above(names[:-1])

    def remove(self, names: Names) -> None:
        """Remove a file, and the folders that are empty without it; a folder stays.

        Raises:
            OSError: as in `folder`.
        """
        folder = self.folder(names[:-1])  # a name of its own keeps it open
        with contextlib.suppress(IsADirectoryError):
            os.unlink(names[-1], dir_fd=folder.fd)
        with self._pruning, contextlib.suppress(OSError):  # ENOTEMPTY is the usual end
            for depth in reversed(range(len(names) - 1)):
                folder = self.folder(names[:depth])
                os.rmdir(names[depth], dir_fd=folder.fd)

    def _write_nameless(self, names: Names, data: bytes, new: bool, durable: bool) -> bool:
        """Write bytes to a file that gets its only name at the end; False if it did not come to it.

        A name that is taken and may be replaced takes a draft, for only a rename replaces at once.
        """
        if not self._swept:
            self._drafts()
        if not self._has_nameless:
            return False
        try:
            folder = self.folder(names[:-1], make=True)
            handle = os.open(".", _NAMELESS, 0o666, dir_fd=folder.fd)
        except (FileNotFoundError, PermissionError):
            # Some kernels say EPERM of a folder that was just removed; where access is really
            # refused, a draft's way ends in the same error.
            return False
        except OSError as error:
            if error.errno not in {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}:
                raise
            self._has_nameless = False
            return False
        try:
            _write_all(handle, data)
            if durable:
                os.fsync(handle)
            os.link(f"/proc/self/fd/{handle}", names[-1], dst_dir_fd=folder.fd)
        except FileExistsError:
            if new:
                raise
            return False
        except FileNotFoundError:  # a delete removed the empty folder under our hands
            return False
        finally:
            os.close(handle)
        if durable:
            os.fsync(folder.fd)
        return True

    def _put(self, draft: Draft, names: Names, new: bool, durable: bool) -> None:
        folder = self.folder(names[:-1], make=True)
        places = {"src_dir_fd": draft.folder.fd, "dst_dir_fd": folder.fd}
        if new:
            os.link(draft.name, names[-1], **places, follow_symlinks=False)
        else:
            os.rename(draft.name, names[-1], **places)
        if durable:
            os.fsync(folder.fd)

    def _put_again(self, draft: Draft, names: Names, new: bool, durable: bool) -> None:
        with self._pruning:
            for tries_left in reversed(range(_TRIES)):  # other processes prune too
                try:
                    self._put(draft, names, new, durable)
                except FileNotFoundError:
                    if not tries_left:
                        raise
                else:
                    return

    def _drafts(self) -> Folder:
        """The folder of drafts; the root is made if need be, and what was left behind is swept."""
        for _ in range(_TRIES):
            try:
                folder = self.folder(_DRAFTS, make=True)
            except FileNotFoundError:
                self.root.mkdir(parents=True, exist_ok=True)
                continue
            if not self._swept:
                self._swept = True
                _sweep(folder.fd)
            return folder
        raise StoreError("vanishes again and again", where=str(self.root))

    def _note_unsynced(self, names: Names) -> None:
        self._unsynced[names] = None
        with contextlib.suppress(KeyError, RuntimeError, StopIteration):  # others change it too
            if len(self._unsynced) > _UNSYNCED:
                del self._unsynced[next(iter(self._unsynced))]

    def _sync_above(self, names: Names) -> None:
        for depth in range(len(names)):
            above = names[:depth]
            if above in self._unsynced:
                self._unsynced.pop(above, None)
                folder = self.folder(above)
                os.fsync(folder.fd)


def _write_all(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _entries(handle: int, start: str) -> list[tuple[str, bool]]:
    """Names of files and folders that can be part of a key, in the byte order of whole keys."""
    found = []
    with os.scandir(handle) as entries:
        for entry in entries:
            if not entry.name.startswith(start) or not is_key(entry.name):
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder or entry.is_file(follow_symlinks=False):
                found.append((entry.name, is_folder))
    # `a-b` comes before `a/b`, hence the "/" in the sort key; code points sort as UTF-8 does.
    return sorted(found, key=lambda item: f"{item[0]}/" if item[1] else item[0])


def _files(handle: int, prefix: str, start: str = "") -> Iterator[tuple[str, int]]:
    for name, is_folder in _entries(handle, start):
        # Whatever vanishes or changes its kind while we walk counts as never seen.
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                size = os.stat(name, dir_fd=handle, follow_symlinks=False).st_size
                yield f"{prefix}{name}", size
            continue
        try:
            below = os.open(name, _FOLDER, dir_fd=handle)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            yield from _files(below, f"{prefix}{name}/")
        finally:
            os.close(below)


def _has_file(handle: int, name: str) -> bool:
    try:
        below = os.open(name, _FOLDER, dir_fd=handle)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return next(_files(below, ""), None) is not None
    finally:
        os.close(below)


def _sweep(folder: int) -> None:
    """Remove drafts whose writer is gone: a living one holds a lock on its draft."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with contextlib.suppress(OSError):
            handle = os.open(name, _FILE, dir_fd=folder)
            try:
                if _is_abandoned(handle):
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)


def _is_abandoned(handle: int) -> bool:
    # The age covers the moment between a draft's making and its lock.
    age = time.time() - os.fstat(handle).st_mtime
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > _ABANDONED_UNLOCKABLE_SECONDS
    return age > _ABANDONED_SECONDS
