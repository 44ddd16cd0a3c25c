"""Whose a branch folder is: a side file that is there before the folder and goes after it.

It lies beside the folder, where no agent can write. While a branch is made or dropped its mark is
locked, so another thread or process sees that it is busy; the lock dies with its holder.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.base import BranchRecord, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIX = ".mark.json"
_WAIT_SECONDS = 0.02
_MAX_BYTES = 4096


def mark_path(folder: Path) -> Path:
    """Return where the mark of a branch's folder lies."""
    return folder.with_name(f"{folder.name}{SUFFIX}")


@contextmanager
def made_mark(folder: Path, mark: Mark) -> Iterator[None]:
    """Write a folder's mark, on the disk before the block starts; locked while it runs.

    Raises:
        FileExistsError: there is one already; it is left as it is.
    """
    path = mark_path(folder)
    fresh = path.with_name(f".{path.name}-{os.getpid()}-{time.monotonic_ns()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            # locked and whole before it has its name: nobody ever sees a mark half made
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, _text_of(mark))
            os.link(fresh, path)
        finally:
            os.unlink(fresh)
        # the last change of the file is its name, so this puts both on the disk
        os.fsync(handle)
        yield
    finally:
        os.close(handle)


@contextmanager
def taken_mark(folder: Path, *, seconds: float) -> Iterator[Mark | None]:
    """Hold a folder's mark while it is dropped; None if there is no sound one.

    Raises:
        WarehouseError: somebody else holds it for longer than `seconds`.
    """
    path = mark_path(folder)
    until = time.monotonic() + seconds
    while True:
        try:
            handle = _open(path)
        except FileNotFoundError:
            yield None
            return
        try:
            if _is_locked(handle) and _is_current(handle, path):
                yield _mark_in(handle)
                return
        finally:
            os.close(handle)
        if time.monotonic() > until:
            raise WarehouseError(
                "is being made or dropped by somebody else", where=str(folder), reason="BranchBusy"
            )
        time.sleep(_WAIT_SECONDS)


def read_mark(folder: Path) -> Mark | None:
    """Return a folder's mark, waiting for nobody; None if there is no sound one."""
    try:
        handle = _open(mark_path(folder))
    except OSError:
        return None
    try:
        return _mark_in(handle)
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _is_locked(handle: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(handle: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), path.lstat())
    return False


def remove_mark(folder: Path) -> None:
    """Remove a folder's mark; the folder must be gone."""
    mark_path(folder).unlink(missing_ok=True)


def marked_in(folder: Path, installation: str) -> tuple[BranchRecord, ...]:
    """Return the marks of one installation, by name; foreign and damaged ones are passed over."""
    records = []
    for path in folder.glob(f"[!.]*{SUFFIX}"):
        try:
            handle = _open(path)
        except OSError:
            continue
        try:
            mark = _mark_in(handle)
            is_busy = not _is_locked(handle, fcntl.LOCK_SH)
        finally:
            os.close(handle)
        if mark is not None and mark.installation == installation:
            records.append(BranchRecord(path.name.removesuffix(SUFFIX), mark, busy=is_busy))
    return tuple(sorted(records, key=lambda record: record.name))


def _text_of(mark: Mark) -> bytes:
    document = {
        "installation": mark.installation,
        "run": mark.run,
        "expires": mark.expires.isoformat(),
    }
    return json.dumps(document).encode()


def _mark_in(handle: int) -> Mark | None:
    try:
        document = json.loads(os.read(handle, _MAX_BYTES))
        mark = Mark(
            installation=str(document["installation"]),
            run=str(document["run"]),
            expires=datetime.fromisoformat(document["expires"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if mark.expires.tzinfo is None else mark
