"""An agent's working directory: whether it was changed, and no credential left in it."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from proctor_grader.store.redact import Masker

_Mark = tuple[int, int, int]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK_BYTES = 1024 * 1024
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Workspace:
    """A working directory at one moment.

    Attributes:
        marks: relative path -> inode, kind and time of the last change. That time, unlike the one
            of the content, can't be set by the agent. A folder's does not count: making and
            removing an entry changes it.
    """

    marks: Mapping[str, _Mark] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Workspace:
        """Look at a directory that only we have written so far."""
        return cls(dict(_marks(root)))

    def differs_from(self, root: Path) -> bool:
        """Whether anything was made, changed or removed since; stops at the first difference."""
        seen = 0
        try:
            for path, mark in _marks(root):
                if self.marks.get(path) != mark:
                    return True
                seen += 1
        except OSError:
            return True
        return seen != len(self.marks)


def _marks(root: Path) -> Iterator[tuple[str, _Mark]]:
    if root.is_symlink():
        raise NotADirectoryError(str(root))
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                found = entry.stat(follow_symlinks=False)
                is_folder = entry.is_dir(follow_symlinks=False)
                yield path, (found.st_ino, found.st_mode, 0 if is_folder else found.st_ctime_ns)
                if is_folder:
                    folders.append(path)


def mask_tree(root: Path, masker: Masker, scratch: Path) -> None:
    """Replace credentials in all regular files below a folder that nobody writes any more.

    Files are opened from their folder's handle, and no link is followed. What can't be read stays
    as it is, and can't be packed either.

    Args:
        root: the folder.
        masker: knows the credentials.
        scratch: a folder of ours on the same file system.

    Raises:
        FileNotFoundError, NotADirectoryError: `root` is no folder.
    """
    os.close(os.open(root, _FOLDER))
    for path, folders, files, handle in os.fwalk(root):
        if path.count("/") - str(root).count("/") >= _MAX_DEPTH:
            folders.clear()
        for name in files:
            try:
                if not stat.S_ISREG(os.lstat(name, dir_fd=handle).st_mode):
                    continue  # a device is not even opened
                descriptor = os.open(name, _FILE, dir_fd=handle)
            except OSError:
                continue
            _mask_file(handle, name, descriptor, masker, scratch / "masked")


def _mask_file(folder: int, name: str, descriptor: int, masker: Masker, draft: Path) -> None:
    with open(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return
        raw, masked = hashlib.sha256(), hashlib.sha256()
        for piece in masker.mask_chunks(_heard(file, raw)):
            masked.update(piece)
        if raw.digest() == masked.digest():
            return
        file.seek(0)
        with draft.open("wb") as copy:
            copy.writelines(masker.mask_chunks(_heard(file, raw)))
    draft.chmod(stat.S_IMODE(found.st_mode) & 0o755)
    try:
        os.replace(draft, name, dst_dir_fd=folder)
    except PermissionError:
        os.fchmod(folder, 0o700)  # it is closed to writing, and ours all the same
        os.replace(draft, name, dst_dir_fd=folder)


def _heard(file: IO[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
        yield chunk
