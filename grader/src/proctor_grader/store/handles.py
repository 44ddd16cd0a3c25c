"""Folders of a tree that stay open between calls, so that a path need not be walked each time.

A folder is opened name by name from the root, and no symbolic link below the root is followed. One
that was opened before is taken again only while its path still leads to it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from proctor_grader.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor_grader.store.key import Names

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
_KEPT = 32


class Folder:
    """An open folder; closed once nobody holds it any more.

    Attributes:
        fd: its descriptor.
    """

    __slots__ = ("_identity", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        found = os.fstat(fd)
        self._identity = (found.st_dev, found.st_ino)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def lies_at(self, path: str) -> bool:
        """Whether the path leads to this very folder; its number is not used again before us."""
        try:
            found = os.lstat(path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


class Handles:
    """The folders below a root that were used last; thread-safe."""

    def __init__(self, root: str, on_made: Callable[[Names], object]) -> None:
        """Begin with nothing open.

        Args:
            root: absolute path; may be a link.
            on_made: told the names of every folder in which one was made.
        """
        self._root = root
        self._on_made = on_made
        self._kept: OrderedDict[Names, Folder] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, names: Names, *, make: bool = False) -> Folder:
        """Return the folder that `names` lead to.

        Args:
            names: from the root.
            make: whether it and those above it are made if need be; the root is not.

        Raises:
            OSError: ENOENT; ENOTDIR or ELOOP when a name is no folder.
            UserError: the root itself is no folder.
        """
        folder, depth = self._deepest_kept(names)
        for at in range(depth, len(names)):
            folder = self._below(folder, names[:at], names[at], make)
            self._keep(names[: at + 1], folder)
        return folder

    def _deepest_kept(self, names: Names) -> tuple[Folder, int]:
        for depth in range(len(names), 0, -1):
            above = names[:depth]
            folder = self._kept.get(above)
            if folder is None:
                continue
            if folder.lies_at(f"{self._root}/{'/'.join(above)}"):
                self._keep(above, folder)
                return folder, depth
            with self._lock:
                self._kept.pop(above, None)
        return self._open_root(), 0

    def _open_root(self) -> Folder:
        try:
            return Folder(os.open(self._root, _ROOT))
        except NotADirectoryError as error:
            raise UserError(
                "is not a folder",
                where=self._root,
                remedy="choose another place for the store",
                reason="InvalidStore",
            ) from error

    def _keep(self, names: Names, folder: Folder) -> None:
        with self._lock:
            self._kept[names] = folder
            self._kept.move_to_end(names)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def _below(self, folder: Folder, above: Names, name: str, make: bool) -> Folder:
        try:
            return Folder(os.open(name, _FOLDER, dir_fd=folder.fd))
        except FileNotFoundError:
            if not make:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder.fd)
            self._on_made(above)
        return Folder(os.open(name, _FOLDER, dir_fd=folder.fd))
