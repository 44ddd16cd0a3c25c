"""Whether a store does what Proctor rests on, found out by use."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING

from proctor_grader.errors import AlreadyExists, UserError

if TYPE_CHECKING:
    from proctor_grader.store.base import Store


def probe_store(store: Store) -> None:
    """Write, read, list and delete an object of a random name; leaves nothing behind.

    Raises:
        UserError: an operation is refused, or the store does not do what it promises.
    """
    key = f"proctor-check-{secrets.token_hex(8)}"
    store.put_new(key, b"first")
    try:
        with contextlib.suppress(AlreadyExists):
            store.put_new(key, b"second")
            raise _unfit(store, "overwrites what must be written once only", "If-None-Match")
        if store.get(key) != b"first" or not store.exists(key):
            raise _unfit(store, "does not give back what was stored", "read after write")
        if [found.key for found in store.list(key)] != [key]:
            raise _unfit(store, "does not list what was stored", "ListObjectsV2")
    finally:
        store.delete(key)
    if store.exists(key):
        raise _unfit(store, "keeps what was deleted", "DeleteObject")


def _unfit(store: Store, what: str, feature: str) -> UserError:
    return UserError(
        what,
        where=store.url,
        remedy=f"choose a store that supports it ({feature})",
        reason="InvalidStore",
    )
