"""Locked DuckDB instances: the only way in which Proctor reads a database file.

Opening an instance costs 10 to 40 ms, attaching a file to a standing one about 2. An instance
reaches one folder, which holds one database at a time; it loads nothing, and no setting of it can
be changed by what it reads.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING

import duckdb

from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.warehouse.duckdb import sqltext
from proctor_grader.warehouse.duckdb.faults import ENGINE_ERRORS, fault_of, no_room
from proctor_grader.warehouse.duckdb.files import NotADatabaseFile, link_database
from proctor_grader.warehouse.duckdb.reading import DuckDBWarehouse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY_LIMIT = "512MiB"
SPILL_LIMIT = "10GiB"
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": MEMORY_LIMIT,
    "max_temp_directory_size": SPILL_LIMIT,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_unsigned_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
}


def closed_connection(
    spill: Path, *, database: Path | None = None, reaches: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Open an instance that can reach nothing but what it is told here.

    Args:
        spill: folder for intermediate data, of this instance alone; SQL may read what is in it.
        database: to attach read-only before the door closes, under its own name.
        reaches: folder within which files may be attached later.
    """
    connection = duckdb.connect(":memory:", config=CONFIG | {"temp_directory": str(spill)})
    try:
        # the standing database must not take a name that a base could have
        standing = sqltext.quoted(f"proctor_{token_hex(8)}")
        for statement in (
            f"ATTACH ':memory:' AS {standing}",
            f"USE {standing}",
            "DETACH memory",
            "LOAD icu",
            "SET TimeZone = 'UTC'",
            f"ATTACH {sqltext.literal(database)} (READ_ONLY)" if database else "",
            # in this order: a folder can't be named once access is off, nothing once it is locked
            f"SET allowed_directories = [{sqltext.literal(f'{reaches}/')}]" if reaches else "",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            if statement:
                connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


class StandingInstance:
    """One instance with the folder it reaches; one database at a time, one thread at a time.

    Attributes:
        is_sound: nothing has failed yet; one that is not must not be used again.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.is_sound = True
        self._folder = folder
        self._data = folder / "data"
        self._data.mkdir(mode=0o700)
        self._lock = _locked_folder(folder)
        self._attached = ""
        self._catalogs: dict[str, str] = {}
        try:
            self._connection = closed_connection(folder / "spill", reaches=self._data)
        except BaseException:
            self._remove()
            raise

    @contextmanager
    def reading(self, folder: Path, name: str) -> Iterator[DuckDBWarehouse]:
        """Attach a database for the block, under the name that it has for whoever opens it there.

        A file that is none, is damaged or has become something else is told by every question to
        the reader; only what is Proctor's own fault is raised here.

        Raises:
            WarehouseError: the file can't be reached, or a process still writes to it.
            StoreFull: there is no room for a link to it.
        """
        try:
            reader = self._reader(folder, name)
            try:
                yield reader
            finally:
                reader.close()
                self.is_sound &= not reader.has_failed
        except BaseException:
            self.is_sound = False
            raise
        finally:
            self._clear()

    def _reader(self, folder: Path, name: str) -> DuckDBWarehouse:
        try:
            link_database(folder, name, self._data)
            self._attach(self._data / name)
        except NotADatabaseFile as error:
            return self._faulty(QueryError(str(error)))
        except OSError as error:
            raise no_room(error, folder) or WarehouseError(
                f"can't be reached: {error.strerror}", where=str(folder)
            ) from error
        except ENGINE_ERRORS as error:
            fault = fault_of(error, folder=str(self._data))
            if not isinstance(fault, QueryError):
                raise fault from error
            return self._faulty(fault)
        return DuckDBWarehouse(self._connection, self._attached, scratch=self._data)

    def _faulty(self, fault: QueryError) -> DuckDBWarehouse:
        self.is_sound = False
        return DuckDBWarehouse(self._connection, "", fault=fault)

    def _attach(self, path: Path) -> None:
        self._connection.execute(f"ATTACH {sqltext.literal(path)} (READ_ONLY)")
        if path.name not in self._catalogs:
            found = self._connection.execute(sqltext.ATTACHED_CATALOG).fetchall()
            self._catalogs[path.name] = found[0][0]
        self._attached = self._catalogs[path.name]

    def _clear(self) -> None:
        try:
            if self._attached:
                self._connection.execute(f"DETACH {sqltext.quoted(self._attached)}")
            for left in self._data.iterdir():
                left.unlink()
        except (OSError, *ENGINE_ERRORS):
            self.is_sound = False
        self._attached = ""

    def close(self) -> None:
        """Close the instance and remove its folder."""
        with suppress(*ENGINE_ERRORS):
            self._connection.close()
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


class InstancePool:
    """Standing instances of this process: as many as were ever in use at the same time."""

    def __init__(self, folders: Path) -> None:
        # without links: some versions compare paths with them followed
        self._folders = folders.resolve()
        self._idle: list[StandingInstance] = []
        self._is_closed = False
        self._changing = threading.Lock()

    @contextmanager
    def reading(self, folder: Path, name: str) -> Iterator[DuckDBWarehouse]:
        """Attach a database to an instance of its own; as `StandingInstance.reading`."""
        instance = self._take()
        try:
            with instance.reading(folder, name) as reader:
                yield reader
        finally:
            self._give_back(instance)

    def _take(self) -> StandingInstance:
        with self._changing:
            if self._idle:
                return self._idle.pop()
        try:
            with _guarded(self._folders):
                return StandingInstance(self._folders / f"{os.getpid()}-{token_hex(8)}")
        except OSError as error:
            raise no_room(error, self._folders) or WarehouseError(
                f"can't be used: {error.strerror}", where=str(self._folders)
            ) from error
        except ENGINE_ERRORS as error:
            raise WarehouseError(f"DuckDB can't be started: {error}") from error

    def _give_back(self, instance: StandingInstance) -> None:
        with self._changing:
            is_kept = instance.is_sound and not self._is_closed
            if is_kept:
                self._idle.append(instance)
        if not is_kept:
            instance.close()

    def remove_dead(self) -> None:
        """Remove the folders of killed processes, which keep files of dropped branches."""
        if self._folders.exists():
            with suppress(OSError), _guarded(self._folders):
                pass

    def close(self) -> None:
        """Close the instances; those in use once they are given back."""
        with self._changing:
            idle, self._idle = self._idle, []
            self._is_closed = True
        for instance in idle:
            instance.close()


@contextmanager
def _guarded(folders: Path) -> Iterator[None]:
    """Keep other processes from making or removing instance folders; remove those of dead ones."""
    folders.mkdir(parents=True, mode=0o700, exist_ok=True)
    guard = _locked_folder(folders)
    try:
        for left in folders.iterdir():
            with suppress(OSError):
                lock = _locked_folder(left, wait=False)
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)
        yield
    finally:
        os.close(guard)


def _locked_folder(folder: Path, *, wait: bool = True) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        raise
    return handle
