"""Writes a query's rows into a new DuckDB file, within a size."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Self

import duckdb

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.base import CaptureTooLarge
from proctor_grader.warehouse.duckdb import sqltext
from proctor_grader.warehouse.duckdb.faults import ENGINE_ERRORS
from proctor_grader.warehouse.duckdb.files import SUFFIXES

if TYPE_CHECKING:
    from types import TracebackType

_LOOK_SECONDS = 0.02


class Dump:
    """A file being dumped: attached in the block, in its place once the block has ended well.

    The file is made in `scratch` where the connection may write nowhere else, then moved. Its
    size is watched from outside while it grows: only `stat`, since opening a file that the engine
    has open in this process would drop the engine's lock on it.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        *,
        scratch: Path | None,
        max_bytes: int,
    ) -> None:
        self.name = f"proctor_{token_hex(8)}"
        self._connection = connection
        self._path = path
        self._made = path if scratch is None else scratch / f"{self.name}.duckdb"
        self._max_bytes = max_bytes
        self._is_attached = False

    def __enter__(self) -> Self:
        if self._path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._path))
        self._connection.execute(sqltext.attach_capture(self._made, self.name))
        self._is_attached = True
        return self

    def write(self, sql: str) -> int:
        """Run the statement that fills the file; return the number of rows.

        Raises:
            CaptureTooLarge: the file grew beyond its limit.
        """
        with _SizeWatch(self._connection, self._made, self._max_bytes) as watch:
            try:
                counted = self._connection.execute(sql).fetchone()
                self._detach()
            except duckdb.InterruptException as error:
                if watch.has_fired:
                    raise CaptureTooLarge(self._max_bytes) from error
                raise
        if self._made.stat().st_size > self._max_bytes:
            raise CaptureTooLarge(self._max_bytes)
        return int(counted[0]) if counted else 0

    def _detach(self) -> None:
        if self._is_attached:
            self._is_attached = False
            self._connection.execute(f"DETACH {sqltext.quoted(self.name)}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and not self._is_attached:
            self._move()
            return
        with suppress(*ENGINE_ERRORS):
            self._detach()
        for suffix in SUFFIXES:
            self._made.with_name(f"{self._made.name}{suffix}").unlink(missing_ok=True)

    def _move(self) -> None:
        if self._made == self._path:
            return
        try:
            shutil.move(self._made, self._path)
        except OSError as error:
            for left in (self._made, self._path):
                left.unlink(missing_ok=True)
            raise WarehouseError(
                f"the capture can't be written: {error.strerror}", where=str(self._path)
            ) from error


class _SizeWatch:
    """Interrupts a connection once a file and its log are larger than they may be."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, max_bytes: int) -> None:
        self.has_fired = False
        self._connection = connection
        self._paths = (path, path.with_name(f"{path.name}.wal"))
        self._max_bytes = max_bytes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proctor-dump-size", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            if sum(map(_size, self._paths)) > self._max_bytes:
                self.has_fired = True
                self._connection.interrupt()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
