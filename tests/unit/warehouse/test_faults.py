from __future__ import annotations

import errno
import os
from pathlib import Path

import duckdb
import pytest

from proctor_grader.errors import QueryError, StoreFull, WarehouseError
from proctor_grader.warehouse.duckdb.faults import (
    DISK_FULL,
    LOCKED,
    OUT_OF_MEMORY,
    fault_of,
    no_room,
)


def io(code: int) -> duckdb.IOException:
    return duckdb.IOException(f'IO Error: Could not write file "/w/x": {os.strerror(code)}')


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        pytest.param(io(errno.ENOSPC), WarehouseError, DISK_FULL, id="disk-full"),
        pytest.param(io(errno.EDQUOT), WarehouseError, DISK_FULL, id="quota"),
        pytest.param(io(errno.EMFILE), WarehouseError, None, id="too-many-open-files"),
        pytest.param(io(errno.EIO), WarehouseError, None, id="disk-broken"),
        pytest.param(
            duckdb.IOException("IO Error: Could not set lock on file 'x': PID 7"),
            WarehouseError,
            LOCKED,
            id="locked-by-another-process",
        ),
        pytest.param(MemoryError(), WarehouseError, OUT_OF_MEMORY, id="no-memory-for-python"),
        pytest.param(
            duckdb.OutOfMemoryException("x"), WarehouseError, OUT_OF_MEMORY, id="no-memory"
        ),
        pytest.param(duckdb.ConnectionException("x"), WarehouseError, None, id="connection"),
        pytest.param(duckdb.IOException("IO Error: corrupt"), QueryError, None, id="damaged-file"),
        pytest.param(duckdb.Error("Corrupt database file"), QueryError, None, id="checksum"),
        pytest.param(duckdb.CatalogException("x"), QueryError, None, id="missing-table"),
        pytest.param(duckdb.PermissionException("x"), QueryError, None, id="reaching-out"),
        pytest.param(
            duckdb.ConversionException(f"'{os.strerror(errno.ENOSPC)}' is no INT32"),
            QueryError,
            None,
            id="an-agents-text-that-sounds-like-a-full-disk",
        ),
        pytest.param(
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
            QueryError,
            None,
            id="text-that-is-none",
        ),
        pytest.param(RuntimeError("x"), QueryError, None, id="anything-else"),
    ],
)
def test_whose_fault_it_is(
    error: Exception, kind: type[QueryError | WarehouseError], reason: str | None
) -> None:
    fault = fault_of(error)
    assert type(fault) is kind
    assert fault.reason == (reason or kind.default_reason)


def test_a_message_holds_no_sql_of_ours_and_no_folder() -> None:
    error = duckdb.BinderException('Binder Error: no "/w/1/a.duckdb"\nhint\n\nLINE 1: SELECT ...')
    assert fault_of(error, folder="/w/1").message == 'Binder Error: no "a.duckdb"\nhint'
    assert fault_of(MemoryError()).message == "MemoryError"
    assert len(fault_of(duckdb.Error("x" * 9999)).message) == 1000


def test_no_room() -> None:
    full = no_room(OSError(errno.ENOSPC, "No space left on device"), Path("/w"))
    assert isinstance(full, StoreFull)
    assert str(full) == "/w: no room on the disk: No space left on device: make room there"
    assert no_room(OSError(errno.EACCES, "no"), Path("/w")) is None
