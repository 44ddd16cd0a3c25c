"""Taking files from a folder that an agent could write, into the store. Every name is hostile.

A file is opened by name from a handle of its folder, without following a link and without waiting
for a writer; only a regular file with one link counts; sizes are bounded and memory is constant.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from proctor_grader.store.base import Store
    from proctor_grader.store.redact import Masker

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK_BYTES = 256 * 1024
_IN_MEMORY_BYTES = 1024 * 1024
_SCRATCH_NAME = "collected"


class Listener(Protocol):
    """Hears a file's content as it is stored, credentials masked."""

    def feed(self, chunk: bytes) -> None:
        """Hear some bytes."""
        ...

    def finish(self) -> None:
        """Hear that there are no more."""
        ...


class Intake:
    """Stores what an agent left, and keeps account of it. A context manager: it holds folders open.

    Attributes:
        files: object key -> sha256 of what is stored so far.
        notes: what was cut or left out, for people.
    """

    def __init__(
        self, store: Store, key_of: Callable[[str], str], masker: Masker, scratch: Path
    ) -> None:
        """Begin.

        Args:
            store: where to.
            key_of: file name -> object key.
            masker: knows the credentials that the agent was given.
            scratch: folder for a large file on its way, out of the agent's reach.
        """
        self.files: dict[str, str] = {}
        self.notes: list[str] = []
        self._store = store
        self._key_of = key_of
        self._masker = masker
        self._scratch = scratch
        self._handles: dict[Path, int | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for handle in self._handles.values():
            if handle is not None:
                os.close(handle)
        self._handles.clear()

    def put(self, name: str, data: bytes) -> None:
        """Store bytes that hold no credential."""
        key = self._key_of(name)
        self._store.put(key, data)
        self.files[key] = hashlib.sha256(data).hexdigest()

    def put_file(self, name: str, path: Path) -> None:
        """Store a file of ours that holds no credential."""
        key = self._key_of(name)
        self.files[key] = self._store.put_file(key, path)

    def take(
        self, folder: Path, name: str, max_bytes: int, listener: Listener | None = None
    ) -> None:
        """Store a file if it is there and not empty."""
        with self._opened(folder, name) as chunks:
            if chunks is not None:
                self._put_chunks(name, self._kept(name, chunks, max_bytes), listener)

    def take_bytes(self, folder: Path, name: str, max_bytes: int) -> bytes | None:
        """Store a file, empty or not, and return what was stored; None if it is not there."""
        with self._opened(folder, name) as chunks:
            if chunks is None:
                return None
            data = b"".join(self._kept(name, chunks, max_bytes))
        self.put(name, data)
        return data

    def _put_chunks(self, name: str, chunks: Iterable[bytes], listener: Listener | None) -> None:
        heard = self._heard(chunks, listener)
        head = bytearray()
        for piece in heard:
            head += piece
            if len(head) > _IN_MEMORY_BYTES:
                break
        else:
            if head:
                self.put(name, bytes(head))
            return
        path = self._scratch / _SCRATCH_NAME
        with path.open("wb") as file:
            file.write(head)
            file.writelines(heard)
        self.put_file(name, path)
        path.unlink()

    def _heard(self, chunks: Iterable[bytes], listener: Listener | None) -> Iterator[bytes]:
        for chunk in chunks:
            if listener is not None:
                listener.feed(chunk)
            yield chunk
        if listener is not None:
            listener.finish()

    def _kept(self, name: str, chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
        left = max_bytes
        # Masked before it is cut: a cut through a credential would leave a part of it.
        for chunk in self._masker.mask_chunks(chunks):
            if len(chunk) > left:
                self.notes.append(f"{name}: only the first {max_bytes} bytes were kept")
                yield chunk[:left]
                return
            left -= len(chunk)
            yield chunk

    @contextlib.contextmanager
    def _opened(self, folder: Path, name: str) -> Iterator[Iterator[bytes] | None]:
        """A file's content; None where there is no such file or it is no plain one."""
        descriptor = self._open(folder, name)
        if descriptor is None:
            yield None
            return
        with open(descriptor, "rb", buffering=0) as file:
            yield iter(lambda: file.read(_CHUNK_BYTES), b"")

    def _open(self, folder: Path, name: str) -> int | None:
        handle = self._handle(folder)
        if handle is None:
            return None
        try:
            descriptor = os.open(name, _FILE, dir_fd=handle)
        except FileNotFoundError:
            return None
        except OSError as error:
            words = os.strerror(error.errno or 0).lower()
            self.notes.append(f"{name}: left out, it can't be read ({words})")
            return None
        facts = os.fstat(descriptor)
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
            return descriptor
        os.close(descriptor)
        self.notes.append(f"{name}: left out, it is no regular file of its own")
        return None

    def _handle(self, folder: Path) -> int | None:
        if folder not in self._handles:
            try:
                self._handles[folder] = os.open(folder, _FOLDER)
            except OSError:
                self._handles[folder] = None
                self.notes.append(f"the folder '{folder.name}' is gone or was replaced")
        return self._handles[folder]
