"""The store protocol. Keys are `/`-joined names built by `layout` and nowhere else.

`key` says what a valid one is; every operation raises `UserError` for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What is known of a stored object without reading it."""

    key: str
    size_bytes: int


class Store(Protocol):
    """A place for objects. Thread-safe. Writes are atomic: a key is absent or whole.

    Raises `StoreError` (after its own bounded retries) when the place can't be reached, `StoreFull`
    when there is no room, `UserError` when bucket, folder or credentials are wrong.
    """

    @property
    def url(self) -> str:
        """The place for people: a folder's path or `s3://bucket/prefix`; never a credential."""
        ...

    def check(self) -> None:
        """Prove that writing, reading and deleting work; leaves nothing behind.

        Raises:
            UserError: names what is missing (bucket, permission, credential) and the remedy.
        """
        ...

    def put(self, key: str, data: bytes, *, durable: bool = False) -> None:
        """Store bytes under a key, replacing what was there.

        Args:
            key: where.
            data: what.
            durable: whether it must survive a power failure. Costs a folder store 1 to 2 ms;
                object stores are durable always.
        """
        ...

    def put_new(self, key: str, data: bytes) -> None:
        """Store bytes durably under a key that must be free; one of two racing writers wins.

        Raises:
            AlreadyExists: the key is taken, also by an equal value.
        """
        ...

    def put_file(self, key: str, path: Path) -> str:
        """Store a file in constant memory, replacing; returns its sha256 in hex.

        The file must not change meanwhile.
        """
        ...

    def get(self, key: str) -> bytes:
        """Read an object whole.

        Raises:
            NotStored: there is none.
        """
        ...

    def get_file(self, key: str, path: Path) -> None:
        """Read an object into a file in constant memory, replacing the file.

        The file appears whole; any error leaves it as it was.

        Raises:
            NotStored: there is none.
        """
        ...

    def exists(self, key: str) -> bool:
        """Whether the key is there; one cheap request."""
        ...

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects whose key starts with `prefix`, by key; streamed."""
        ...

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Names directly below `prefix` (which ends with `/`) that have something below them."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; missing is success."""
        ...
