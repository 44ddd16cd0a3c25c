"""From what a user wrote to a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.store.directory import DirectoryStore
from proctor_grader.store.place import DEFAULT_STORE, parse_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor_grader.errors import StoreError
    from proctor_grader.store.base import Store

RETRY_SECONDS = 120.0
"""How long a store that can't be reached is waited for (design.md, section 7)."""


def open_store(
    url: str = DEFAULT_STORE,
    *,
    retry_seconds: float = RETRY_SECONDS,
    on_outage: Callable[[StoreError], None] | None = None,
) -> Store:
    """Open the store at a place; nothing is read or written yet.

    Args:
        url: a folder's path, `file:///folder` or `s3://bucket/prefix`, the latter with the options
            `endpoint`, `region` and `path_style` as a query. What is not given there, credentials
            above all, comes from where AWS tools take it (`AWS_ENDPOINT_URL_S3`, `AWS_PROFILE`).
        retry_seconds: how long an outage of a remote store is ridden out.
        on_outage: told once per outage, by the thread that met it first.

    Raises:
        UserError: the place is not valid, or holds credentials.
    """
    place = parse_place(url)
    if isinstance(place, Path):
        return DirectoryStore(place)
    from proctor_grader.store.s3 import S3Store  # noqa: PLC0415 - boto3 costs 0.45 s

    return S3Store(place, retry_seconds=retry_seconds, on_outage=on_outage)
