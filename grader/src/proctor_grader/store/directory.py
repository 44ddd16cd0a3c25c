"""A store in a folder. Objects are plain files under their keys.

Symbolic links and special files below the root are no objects and are never followed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from proctor_grader.errors import AlreadyExists, NotStored, UserError
from proctor_grader.store.base import StoredObject
from proctor_grader.store.fault import lacks_links, reported
from proctor_grader.store.key import TEMPORARY, is_key, split_folder, split_key, split_prefix
from proctor_grader.store.localfile import CHUNK_BYTES, new_file
from proctor_grader.store.probe import probe_store
from proctor_grader.store.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_T = TypeVar("_T")
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}


class DirectoryStore:
    """A `Store` in a folder, which the first write makes.

    What must survive a power failure (plans, results, `run.json`) is written durably: file and
    folders are synced, 1 to 2 ms. Everything else is whole or absent after a crash of the process,
    and has its digest in a marker.
    """

    def __init__(self, root: Path) -> None:
        # Absolute, since a later change of the working directory must not move the
        # store; resolve() would follow links, and the path is shown as it was given.
        self._tree = Tree(Path(os.path.abspath(root)))

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return str(self._tree.root)

    def check(self) -> None:
        """Prove that the folder can be used; one that is made for it is removed again."""
        root = self._tree.root
        missing = [path for path in (root, *root.parents) if not path.exists()]
        try:
            probe_store(self)
        finally:
            for path in [root / TEMPORARY, *missing] if missing else []:
                with contextlib.suppress(OSError):  # somebody else uses it by now
                    path.rmdir()

    def put(self, key: str, data: bytes, *, durable: bool = False) -> None:
        """Store bytes under a key, replacing what was there."""
        names = split_key(key)
        with reported(self._where(key)):
            self._tree.write(names, data, durable=durable)

    def put_new(self, key: str, data: bytes) -> None:
        """Store bytes under a free key, durably; a hard link decides who of two writers wins."""
        names = split_key(key)
        with reported(self._where(key)):
            try:
                self._tree.write(names, data, new=True, durable=True)
            except FileExistsError as error:
                raise AlreadyExists(key) from error
            except OSError as error:
                if lacks_links(error):
                    raise UserError(
                        "the file system has no hard links, which write-once objects need",
                        where=self.url,
                        remedy="choose another place for the store",
                        reason="InvalidStore",
                    ) from error
                raise

    def put_file(self, key: str, path: Path) -> str:
        """Copy a file into the store; returns its sha256 in hex."""
        names = split_key(key)
        digest = hashlib.sha256()
        with (
            path.open("rb", buffering=0) as source,
            reported(self._where(key)),
            self._tree.draft() as draft,
        ):
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                draft.file.write(chunk)
            self._tree.place(draft, names)
        return digest.hexdigest()

    def get(self, key: str) -> bytes:
        """Read an object whole."""
        with self._reading(key) as file:
            return file.read()

    def get_file(self, key: str, path: Path) -> None:
        """Copy an object to a file, which appears whole or not at all."""
        with self._reading(key) as file, new_file(path) as target:
            shutil.copyfileobj(file, target, CHUNK_BYTES)

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        names = split_key(key)
        with reported(self._where(key)):
            try:
                return self._tree.size(names) is not None
            except OSError as error:
                if error.errno in _ABSENT:
                    return False
                raise

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects whose key starts with `prefix`, by key."""
        folders, start = split_prefix(prefix)
        found = self._walked(prefix, self._tree.files(folders, start))
        return (StoredObject(key, size) for key, size in found if is_key(key))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Names directly below `prefix` that have something below them."""
        return self._walked(prefix, self._tree.folders(split_folder(prefix)))

    def delete(self, key: str) -> None:
        """Remove an object, and the folders that are empty without it."""
        names = split_key(key)
        with reported(self._where(key)):
            try:
                self._tree.remove(names)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise

    def _where(self, key: str) -> str:
        return f"{self._tree.root}/{key}"

    @contextlib.contextmanager
    def _reading(self, key: str) -> Iterator[IO[bytes]]:
        names = split_key(key)
        with reported(self._where(key)), contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(self._tree.file(names))
            except OSError as error:
                if error.errno in _ABSENT:
                    raise NotStored(key) from error
                raise
            yield file

    def _walked(self, prefix: str, found: Iterator[_T]) -> Iterator[_T]:
        with reported(self._where(prefix)):
            try:
                yield from found
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
