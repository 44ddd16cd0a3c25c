"""Branches of a DuckDB base: copies of its file, each in a folder of its own, with a side mark."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.errors import BaseBusy, BranchError, WarehouseError
from proctor_grader.removal import remove_folder
from proctor_grader.warehouse.base import AdapterOptions, Branch, BranchRecord, Mark, Shortfall
from proctor_grader.warehouse.duckdb.basefile import check_file, path_of
from proctor_grader.warehouse.duckdb.faults import no_room
from proctor_grader.warehouse.duckdb.files import (
    FileChanged,
    copy_database,
    copy_untouched,
    size_of_database,
)
from proctor_grader.warehouse.duckdb.instance import InstancePool
from proctor_grader.warehouse.duckdb.marking import (
    made_mark,
    mark_path,
    marked_in,
    read_mark,
    remove_mark,
    taken_mark,
)
from proctor_grader.warehouse.duckdb.opening import check_base
from proctor_grader.warehouse.duckdb.reading import ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from proctor_grader.warehouse.duckdb.reading import DuckDBWarehouse

READERS_FOLDER = ".readers"
_NAME = re.compile(r"[a-z0-9-]{1,63}")
_SPARE_BYTES = 64 << 20
_BUSY_SECONDS = 30.0
_REMOVAL_SECONDS = 120.0
_RETRY_SECONDS = 0.1


class DuckDBAdapter:
    """Makes and drops copies of one database file; `BranchAdapter` says what each method means.

    Every branch of a run is copied from that run's shared branch once this adapter has made one:
    nobody ever writes to it, so a base that changes meanwhile changes nothing for the run.

    Args:
        base: absolute path; None for an adapter that only finds and drops branches.
    """

    engine = ENGINE

    def __init__(self, base: Path | None, options: AdapterOptions) -> None:
        self._base = base
        self._options = options
        self._folder = Path(os.path.abspath(options.branches_dir))
        self._pool = InstancePool(self._folder / READERS_FOLDER)
        self._shared: dict[str, Path] = {}
        self._changing = threading.Lock()

    @property
    def location(self) -> str:
        """The base's path; the branches' folder where there is no base."""
        return str(self._base or self._folder)

    def privileges(self) -> tuple[Shortfall, ...]:
        """Whether branches can be written and have room; nothing is left behind.

        Raises:
            UserError: there is no such base, or somebody writes to it just now.
            WarehouseError: it can't be opened for want of memory, handles or rights.
        """
        if self._base:
            check_base(self._base)
        place = next(each for each in (self._folder, *self._folder.parents) if each.exists())
        if not os.access(place, os.W_OK | os.X_OK):
            return (
                Shortfall(
                    f"no branches can be made in '{self._folder}': '{place}' can't be written to",
                    "make it writable, or choose another place with PROCTOR_STATE_DIR",
                ),
            )
        needed = size_of_database(self._base) + _SPARE_BYTES if self._base else 0
        free = shutil.disk_usage(place).free
        if free < needed:
            return (
                Shortfall(
                    f"a branch needs about {needed} bytes in '{place}' (found {free} free)",
                    "make room there, or choose another place with PROCTOR_STATE_DIR",
                ),
            )
        return ()

    def create(self, name: str, mark: Mark) -> Branch:
        """Make a private writable copy. A leftover of our own under that name is dropped first."""
        path = self._make(name, mark, lambda folder: self._copy_base(mark.run, folder))
        return Branch(name, agent_dsn=str(path), grader_dsn=str(path), sandbox_path=path.parent)

    def create_shared(self, name: str, mark: Mark) -> Branch:
        """Make the copy that a run's fingerprint is taken from and its other copies are made of."""
        path = self._make(name, mark, self._copy_guarded)
        with self._changing:
            self._shared[mark.run] = path
        return Branch(name, agent_dsn="", grader_dsn=str(path))

    def grant_read(self, shared: Branch, name: str, mark: Mark) -> Branch:
        """Make a private copy of the shared one: a file has no roles that could only read."""
        source = Path(shared.grader_dsn)
        path = self._make(name, mark, lambda folder: copy_untouched(source, folder))
        return Branch(name, agent_dsn=str(path), grader_dsn=str(path), sandbox_path=path.parent)

    def fence(self, name: str) -> None:
        """Nothing: a file has no sessions to end. The agent's process is ended by who started it.

        One that lives on keeps files which no branch has any more, once the branch is dropped.

        Raises:
            BranchError: a folder of that name is not ours.
        """
        folder = self._path(name)
        mark = read_mark(folder)
        if os.path.lexists(folder) and not self._is_ours(mark):
            raise _not_ours(folder)

    def drop(self, name: str) -> None:
        """Remove the folder and then its mark; a copy half made or half removed likewise.

        Raises:
            BranchError: a folder of that name is not ours; it is left alone.
            WarehouseError: something resists, or somebody else makes or drops it just now.
        """
        folder = self._path(name)
        with taken_mark(folder, seconds=_BUSY_SECONDS) as mark:
            if mark is None and not os.path.lexists(folder):
                return
            if not self._is_ours(mark):
                raise _not_ours(folder)
            self._remove(folder)

    def list_marked(self) -> tuple[BranchRecord, ...]:
        """Everything that carries a mark of this installation, by name; half made ones too."""
        return marked_in(self._folder, self._options.installation)

    @contextmanager
    def open_reader(self, branch: Branch) -> Iterator[DuckDBWarehouse]:
        """Attach the branch to a standing locked instance for the block."""
        path = Path(branch.grader_dsn)
        if not mark_path(path.parent).exists():
            raise WarehouseError("the branch is gone", where=branch.name)
        with self._pool.reading(path.parent, path.name) as reader:
            yield reader

    def remove_dead_readers(self) -> None:
        """Remove what readers of killed processes left."""
        self._pool.remove_dead()

    def close(self) -> None:
        """Close the standing instances."""
        self._pool.close()

    def _path(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise BranchError(f"'{name}' is no branch's name", reason="InvalidName")
        return self._folder / name

    def _is_ours(self, mark: Mark | None) -> bool:
        return mark is not None and mark.installation == self._options.installation

    def _make(self, name: str, mark: Mark, copy: Callable[[Path], Path]) -> Path:
        folder = self._path(name)
        try:
            self._folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            self.drop(name)
            with made_mark(folder, mark):
                try:
                    folder.mkdir(mode=0o700)
                except OSError:
                    remove_mark(folder)
                    raise
                try:
                    return copy(folder)
                except BaseException:
                    self._remove(folder)
                    raise
        except FileExistsError as error:
            raise BranchError(
                "is being made by somebody else at the same time", where=str(folder)
            ) from error
        except OSError as error:
            raise no_room(error, self._folder) or WarehouseError(
                f"can't be copied: {error.strerror} ({error.filename})", where=str(folder)
            ) from error

    def _copy_base(self, run: str, folder: Path) -> Path:
        with self._changing:
            shared = self._shared.get(run)
        if shared is not None and shared.exists():
            return copy_untouched(shared, folder)
        return self._copy_guarded(folder)

    def _copy_guarded(self, folder: Path) -> Path:
        if self._base is None:
            raise BranchError("there is no base to copy", where=self.location)
        until = time.monotonic() + self._options.base_wait_seconds
        while True:
            try:
                return copy_database(self._base, folder)
            except OSError:
                # says better what is wrong, if it is the base
                check_file(self._base)
                raise
            except (BaseBusy, FileChanged) as error:
                for left in folder.iterdir():
                    left.unlink()
                if time.monotonic() > until:
                    raise _busy(error, self._base) from error
            time.sleep(_RETRY_SECONDS)

    def _remove(self, folder: Path) -> None:
        remove_folder(folder, seconds=_REMOVAL_SECONDS)
        remove_mark(folder)


def _busy(error: BaseBusy | FileChanged, base: Path) -> BaseBusy:
    if isinstance(error, BaseBusy):
        return error
    return BaseBusy(
        "changes while it is being copied",
        where=str(base),
        remedy="try again when nothing writes to it",
    )


def _not_ours(folder: Path) -> BranchError:
    return BranchError(
        "carries no mark of this installation and is left alone",
        where=str(folder),
        remedy="move it away if it is not needed",
        reason="BranchNotOurs",
    )


def open_adapter(url: str, options: AdapterOptions) -> DuckDBAdapter:
    """Open an adapter for the base that the URL names.

    The base itself is looked at by `privileges` and by what copies it, so that branches of one
    that is gone can still be dropped.
    """
    return DuckDBAdapter(path_of(url), options)


def open_leftovers(options: AdapterOptions) -> DuckDBAdapter:
    """Open an adapter without a base, which can only list, fence, read and drop branches."""
    adapter = DuckDBAdapter(None, options)
    adapter.remove_dead_readers()
    return adapter
