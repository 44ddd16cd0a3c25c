"""What this machine remembers between runs: an installation id, and a locked folder a run.

A run is gone when its lock is free: the kernel lets go of it however the process ended.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from proctor_grader.errors import RunError, TransientError, UserError
from proctor_grader.jsontext import dump_bytes, load_json
from proctor_grader.model.unit import RunId
from proctor_grader.removal import remove_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE_DIR = "PROCTOR_STATE_DIR"
_REMOVAL_SECONDS = 600.0
_GONE = ".gone-"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder: lock, record of what it uses, work and branch folders."""

    path: Path

    @property
    def id(self) -> RunId:
        """The run's id."""
        return RunId(self.path.name)

    @property
    def work(self) -> Path:
        """Folders of attempts; short opaque names, since agents can see them."""
        return self.path / "work"

    @property
    def eval_set(self) -> Path:
        """The run's own copy of its set."""
        return self.path / "set"

    @property
    def record(self) -> Path:
        """JSON: what a later sweep has to know, without passwords."""
        return self.path / "run.json"

    def read_record(self) -> dict[str, str]:
        """Return `{warehouse, store}`; empty where the run ended before it was written."""
        try:
            document = load_json(self.record.read_bytes())
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def remove(self) -> None:
        """Remove the folder with all that agents left in it; its name is free at once.

        Raises:
            TransientError: something is left, under a name that is nobody's.
        """
        gone = self.path.with_name(f"{_GONE}{self.path.name}-{secrets.token_hex(4)}")
        with _guarded(self.path.parent.parent), contextlib.suppress(FileNotFoundError):
            self.path.rename(gone)
        remove_tree(gone)


@dataclass(slots=True)
class HeldRun:
    """A run folder whose lock this process holds."""

    folder: RunFolder
    lock: int

    def release(self, *, remove: bool) -> None:
        """Let go of the lock; with `remove` the folder goes first.

        Raises:
            TransientError: something of the folder is left; the lock is free all the same.
        """
        try:
            if remove:
                self.folder.remove()
        finally:
            with contextlib.suppress(OSError):
                os.close(self.lock)


@dataclass(frozen=True, slots=True)
class LocalState:
    """The state folder."""

    root: Path

    @classmethod
    def open(cls) -> LocalState:
        """Open the folder named by `PROCTOR_STATE_DIR`, by default the user's state folder.

        Raises:
            UserError: the folder can't be made or written.
        """
        named = os.environ.get(STATE_DIR)
        root = Path(named) if named else Path(platformdirs.user_state_dir("proctor"))
        state = cls(root.absolute())
        try:
            state.runs.mkdir(parents=True, exist_ok=True)
            state.branches.mkdir(exist_ok=True)
            state.root.chmod(0o700)
        except OSError as error:
            raise UserError(
                f"the state folder can't be used ({error.strerror})",
                where=str(state.root),
                remedy=f"make it writable or set {STATE_DIR} to another folder",
            ) from error
        return state

    @property
    def runs(self) -> Path:
        """One folder a run."""
        return self.root / "runs"

    @property
    def branches(self) -> Path:
        """Branches that are files, of all runs; each carries its own mark."""
        return self.root / "branches"

    @property
    def installation(self) -> str:
        """This installation's random id, made on first use."""
        path = self.root / "installation"
        fresh = self.root / f".installation-{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            return path.read_text("ascii").strip()
        fresh.write_text(f"laptop-{secrets.token_hex(8)}\n", "ascii")
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
        return path.read_text("ascii").strip()

    def hold(self, run_id: RunId, record: dict[str, str]) -> HeldRun:
        """Make and lock a run's folder.

        Raises:
            RunError: another process holds it.
        """
        folder = RunFolder(self.runs / run_id)
        with _guarded(self.root):
            folder.path.mkdir(exist_ok=True)
            lock = _try_lock(folder)
        if lock is None:
            raise RunError("is running right now", where=run_id, reason="RunAlive")
        folder.work.mkdir(exist_ok=True)
        folder.record.write_bytes(dump_bytes(record))
        return HeldRun(folder, lock)

    def gone(self) -> Iterator[HeldRun]:
        """Hold each run whose process is gone, one after the other; the caller releases it."""
        for path in self.runs.glob(f"{_GONE}*"):
            with contextlib.suppress(TransientError):
                remove_tree(path)
        for folder in self._folders():
            with _guarded(self.root):
                lock = _try_lock(folder)
            if lock is not None:
                yield HeldRun(folder, lock)

    def alive(self) -> frozenset[str]:
        """Ids of runs whose lock is held by a process."""
        living = set()
        with _guarded(self.root):
            for folder in self._folders():
                lock = _try_lock(folder)
                if lock is None:
                    living.add(folder.path.name)
                else:
                    os.close(lock)
        return frozenset(living)

    def _folders(self) -> list[RunFolder]:
        paths = (path for path in self.runs.iterdir() if not path.name.startswith("."))
        return [RunFolder(path) for path in sorted(paths) if path.is_dir()]


@contextlib.contextmanager
def _guarded(root: Path) -> Iterator[None]:
    """Nobody else takes a run's lock, or its folder away, within the block."""
    guard = os.open(root / "guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def _try_lock(folder: RunFolder) -> int | None:
    """Take a run's lock; None if a process holds it, or the folder is gone."""
    try:
        lock = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return None
        raise
    return lock


def remove_tree(path: Path) -> None:
    """Remove a folder whatever an agent did to it (depth, rights, links); links stay unfollowed.

    Raises:
        TransientError: something is left.
    """
    remove_folder(path, seconds=_REMOVAL_SECONDS)
