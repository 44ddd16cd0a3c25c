"""A folder tree that is walked name by name from a handle of its root.

A symbolic link below the root is never followed, whoever put it there and when. Files are drafted
in `.tmp` and get their place at once; a draft that a killed process left is swept by a later one.
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

from proctor_grader.errors import StoreError, UserError
from proctor_grader.store.key import TEMPORARY, is_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DRAFT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFTS = (TEMPORARY,)
_TRIES = 100
_ABANDONED_SECONDS = 60.0
_ABANDONED_UNLOCKABLE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Draft:
    """A file without a place yet."""

    folder: int
    name: str
    file: IO[bytes]


class Tree:
    """A folder tree; thread-safe, and safe beside other processes on the same folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._swept = False
        # Folders in which this process made a folder that is not on disk for certain. Only single
        # set operations, so no lock; a durable write takes those above its file out again.
        self._unsynced: set[tuple[str, ...]] = set()
        # Held by who removes empty folders, and by who lost one while putting a file into it.
        self._pruning = threading.Lock()

    @contextlib.contextmanager
    def folder(self, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """A handle of the folder that `names` lead to.

        Raises:
            OSError: ENOENT; ENOTDIR or ELOOP when a name is no folder.
            UserError: the root itself is no folder.
        """
        try:
            handle = os.open(self.root, _ROOT)
        except NotADirectoryError as error:
            raise UserError(
                "is not a folder",
                where=str(self.root),
                remedy="choose another place for the store",
                reason="InvalidStore",
            ) from error
        try:
            for depth, name in enumerate(names):
                below = self._below(handle, names[:depth], name, make)
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def file(self, names: tuple[str, ...]) -> Iterator[IO[bytes]]:
        """A regular file, open for reading.

        Raises:
            OSError: ENOENT also for what is no regular file, else as in `folder`.
        """
        with self.folder(names[:-1]) as folder:
            handle = os.open(names[-1], _FILE, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, "is no regular file")
        with open(handle, "rb") as file:
            yield file

    def files(self, names: tuple[str, ...], start: str = "") -> Iterator[tuple[str, int]]:
        """Path and size of every regular file below a folder, in the byte order of the paths.

        Args:
            names: of the folder.
            start: what the first name below it starts with.
        """
        with self.folder(names) as handle:
            yield from _files(handle, "".join(f"{name}/" for name in names), start)

    def folders(self, names: tuple[str, ...]) -> Iterator[str]:
        """Names of the folders directly below a folder that have a file below them, sorted."""
        with self.folder(names) as handle:
            for name, is_folder in _entries(handle, ""):
                if is_folder and _has_file(handle, name):
                    yield name

    @contextlib.contextmanager
    def draft(self) -> Iterator[Draft]:
        """An empty file that is gone after the block unless `place` gave it a place."""
        with self._drafts() as folder:
            if not self._swept:
                self._swept = True
                _sweep(folder)
            name = secrets.token_hex(8)
            handle = os.open(name, _DRAFT, 0o666, dir_fd=folder)  # the umask decides
            try:
                with open(handle, "wb") as file:
                    with contextlib.suppress(OSError):  # not every file system has locks
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield Draft(folder, name, file)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def place(
        self, draft: Draft, names: tuple[str, ...], *, new: bool = False, durable: bool = False
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

    def remove(self, names: tuple[str, ...]) -> None:
        """Remove a file, and the folders that are empty without it; a folder stays.

        Raises:
            OSError: as in `folder`.
        """
        with self.folder(names[:-1]) as folder, contextlib.suppress(IsADirectoryError):
            os.unlink(names[-1], dir_fd=folder)
        with self._pruning, contextlib.suppress(OSError):  # ENOTEMPTY is the usual end
            for depth in reversed(range(len(names) - 1)):
                with self.folder(names[:depth]) as folder:
                    os.rmdir(names[depth], dir_fd=folder)

    def _put(self, draft: Draft, names: tuple[str, ...], new: bool, durable: bool) -> None:
        with self.folder(names[:-1], make=True) as folder:
            if new:
                os.link(
                    draft.name,
                    names[-1],
                    src_dir_fd=draft.folder,
                    dst_dir_fd=folder,
                    follow_symlinks=False,
                )
            else:
                os.rename(draft.name, names[-1], src_dir_fd=draft.folder, dst_dir_fd=folder)
            if durable:
                os.fsync(folder)

    def _put_again(self, draft: Draft, names: tuple[str, ...], new: bool, durable: bool) -> None:
        with self._pruning:
            for tries_left in reversed(range(_TRIES)):  # other processes prune too
                try:
                    self._put(draft, names, new, durable)
                except FileNotFoundError:
                    if not tries_left:
                        raise
                else:
                    return

    def _below(self, handle: int, above: tuple[str, ...], name: str, make: bool) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=handle)
        except FileNotFoundError:
            if not make:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=handle)
            self._unsynced.add(above)
        return os.open(name, _FOLDER, dir_fd=handle)

    @contextlib.contextmanager
    def _drafts(self) -> Iterator[int]:
        for _ in range(_TRIES):
            with contextlib.ExitStack() as stack:
                try:
                    folder = stack.enter_context(self.folder(_DRAFTS, make=True))
                except FileNotFoundError:
                    self.root.mkdir(parents=True, exist_ok=True)
                    continue
                yield folder
                return
        raise StoreError("vanishes again and again", where=str(self.root))

    def _sync_above(self, names: tuple[str, ...]) -> None:
        for depth in range(len(names)):
            above = names[:depth]
            if above in self._unsynced:
                self._unsynced.discard(above)
                # One that is gone by now held nothing any more, our file included.
                with contextlib.suppress(FileNotFoundError), self.folder(above) as folder:
                    os.fsync(folder)


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
