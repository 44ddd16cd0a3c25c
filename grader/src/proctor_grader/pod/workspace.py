"""An agent's working directory: whether it was changed, and no credential left in it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING

from proctor_grader import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
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


def mask_tree(
    root: Path, masker: Masker, scratch: Path, *, max_bytes: int = contract.MAX_WORKSPACE_BYTES
) -> None:
    """Replace credentials in all regular files below a folder that nobody writes any more.

    Files are opened from their folder's handle, and no link is followed. What can't be read, or is
    too large, stays as it is, and can't be packed either. Holes are not read, so the work is
    bounded by what lies on the disk, however large sparse files say they are.

    Args:
        root: the folder.
        masker: knows the credentials.
        scratch: a folder of ours on the same file system.
        max_bytes: larger files are left alone; once so much was written anew, further files with
            credentials are removed.

    Raises:
        FileNotFoundError, NotADirectoryError: `root` is no folder.
    """
    os.close(os.open(root, _FOLDER))
    if not masker.has_secrets:
        return
    room = max_bytes
    for folder, name, file in _plain_files(root):
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes or not _holds_secret(file, masker):
            continue
        if size > room:
            _change(folder, partial(os.unlink, name, dir_fd=folder))
            continue
        room -= size
        _rewrite(folder, name, file, masker, scratch / "masked")


def _plain_files(root: Path) -> Iterator[tuple[int, str, IO[bytes]]]:
    """Handle of its folder, name and content of every regular file with one name."""
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
            with open(descriptor, "rb", buffering=0) as file:
                found = os.fstat(descriptor)
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                    yield handle, name, file


def _holds_secret(file: IO[bytes], masker: Masker) -> bool:
    raw, masked = hashlib.sha256(), hashlib.sha256()
    for piece in masker.mask_chunks(_heard(_data(file), raw)):
        masked.update(piece)
    return raw.digest() != masked.digest()


def _rewrite(folder: int, name: str, file: IO[bytes], masker: Masker, draft: Path) -> None:
    file.seek(0)
    with draft.open("wb") as copy:
        copy.writelines(masker.mask_chunks(iter(lambda: file.read(_CHUNK_BYTES), b"")))
    draft.chmod(stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o755)
    _change(folder, partial(os.replace, draft, name, dst_dir_fd=folder))


def _change(folder: int, change: Callable[[], None]) -> None:
    """Change an entry of a folder that may be closed to writing, and is ours all the same."""
    try:
        change()
    except PermissionError:
        os.fchmod(folder, 0o700)
        change()


def _data(file: IO[bytes]) -> Iterator[bytes]:
    """A file's content without its holes."""
    handle, size = file.fileno(), os.fstat(file.fileno()).st_size
    position = 0
    while position < size:
        try:
            position = os.lseek(handle, position, os.SEEK_DATA)
            end = os.lseek(handle, position, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            end = size  # this file system does not tell
        while position < end and (
            chunk := os.pread(handle, min(_CHUNK_BYTES, end - position), position)
        ):
            position += len(chunk)
            yield chunk
        if position < end:
            return


def _heard(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk
