"""One server of a kind for a whole test session, however many workers it has and however it ends.

The session's owner (pytest's first process) holds a lock on a file for as long as it lives. The
first test that needs a server starts a *keeper*, a process of its own that starts the server and
ends it once it gets that lock: after a normal end as well as after a kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.services.process import ServerError

PREFIX = "proctor-test-"
OWNER = "owner.lock"
END_SECONDS = 30.0
STALE_SECONDS = 600.0
ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; waits for it. The kernel frees it when the holder dies."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """Whether somebody holds the file's lock."""
    try:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@dataclass(slots=True)
class Session:
    """The servers that a test session shares; every worker has one on the same folder."""

    folder: Path
    _lock: IO[str] | None = field(default=None, repr=False)

    @classmethod
    def begin(cls) -> Session:
        """Own a new session. Removes what killed sessions left behind."""
        sweep()
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        folder.chmod(0o711)  # PostgreSQL's account must get through to its data
        lock = (folder / OWNER).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return cls(folder, lock)

    def end(self) -> None:
        """End the servers, wait until they are gone, and delete all that they had."""
        if self._lock is None:
            return
        self._lock.close()
        self._lock = None
        deadline = time.monotonic() + END_SECONDS
        while any(is_locked(file) for file in self.folder.glob("*.keeper")):
            if time.monotonic() > deadline:
                raise ServerError(f"a server of the session in {self.folder} does not end")
            time.sleep(0.02)
        shutil.rmtree(self.folder, ignore_errors=True)

    def shared(self, kind: str) -> dict[str, Any]:
        """How to get into the session's server of a kind; starts it when this is the first call.

        Raises:
            ServerError: it did not start; every later call says the same.
        """
        description = self.folder / f"{kind}.json"
        with locked(self.folder / f"{kind}.start"):
            if not description.exists():
                description.touch(mode=0o600)
                description.write_text(json.dumps(self._launch_keeper(kind)))
            described: dict[str, Any] = json.loads(description.read_text())
        if "error" in described:
            raise ServerError(described["error"])
        return described

    def private_folder(self) -> Path:
        """A path for a server of one test, deleted with the session at the latest."""
        holder = Path(tempfile.mkdtemp(prefix="private-", dir=self.folder))
        holder.chmod(0o711)
        return holder / "server"

    def _launch_keeper(self, kind: str) -> dict[str, Any]:
        # Coverage must not measure the keeper: it would write its data after the session's end.
        clean = {name: value for name, value in os.environ.items() if "COV" not in name}
        log_file = self.folder / f"{kind}.keeper.log"
        with log_file.open("wb") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "tests.services", "keep", kind, str(self.folder)],
                cwd=ROOT,
                env=clean,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert keeper.stdout is not None
        with keeper.stdout as answer:
            line = answer.readline()
        keeper.wait()  # it goes on as a grandchild
        if line:
            described: dict[str, Any] = json.loads(line)
            return described
        return {"error": f"the server did not start:\n{log_file.read_text(errors='replace')}"}


def sweep() -> None:
    """Delete the folders of sessions that were killed; one that still lives holds a lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            locks = [folder / OWNER, *folder.glob("*.keeper")]
            if folder.stat().st_uid != os.geteuid() or any(map(is_locked, locks)):
                continue
            if time.time() - folder.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
