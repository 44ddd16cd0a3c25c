"""The run's own copy of its set: what scripts get, and what is kept with the run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.errors import UserError
from proctor_grader.store.archive import pack_tree, unpack_tree

if TYPE_CHECKING:
    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import RunKeys
    from proctor_operator.local.history import StoredRun

_LEFT_OUT = frozenset({".git", ".proctor"})
_DATA_SUFFIXES = (".duckdb", ".duckdb.wal")


def copy_set(source: Path, target: Path, store_url: str) -> None:
    """Copy a set's folder without git's files, stores and warehouse files; links stay links.

    Args:
        source: the set as the user named it.
        target: must not exist.
        store_url: of this run; a store below the set is left out.
    """
    store = Path(store_url)

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if name in _LEFT_OUT
            or name.endswith(_DATA_SUFFIXES)
            or Path(folder, name) == store
            or _is_special(Path(folder, name))
        }

    shutil.copytree(source, target, symlinks=True, ignore=ignore)


def keep_set(store: Store, keys: RunKeys, folder: Path, scratch: Path) -> None:
    """Store a set's copy beside its run, so that the run can be resumed and graded again.

    Raises:
        UserError: the set is too large to be kept.
    """
    archive = scratch / "set.tar.gz"
    packed = pack_tree(folder, archive, hard_links=True)
    if packed.truncated:
        raise UserError(
            f"the set is too large to be kept with a run (beyond {packed.files} files of "
            f"{packed.bytes} bytes)",
            where=str(folder),
            remedy="move what tasks and scripts do not need out of its folder",
        )
    store.put_file(keys.eval_set, archive)
    archive.unlink()


def unpack_set(run: StoredRun, folder: Path) -> Path:
    """Unpack the set that is kept with a run, and return its folder.

    Raises:
        UserError: the run ended before it was kept.
    """
    archive = folder / "set.tar.gz"
    if not run.store.exists(run.keys.eval_set):
        raise UserError("ended before its set was stored", where=run.id, remedy="start a new run")
    run.store.get_file(run.keys.eval_set, archive)
    target = folder / "set"
    unpack_tree(archive, target)
    archive.unlink()
    return target


def _is_special(path: Path) -> bool:
    return not (path.is_symlink() or path.is_dir() or path.is_file())
