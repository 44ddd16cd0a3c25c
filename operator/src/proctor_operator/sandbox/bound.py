"""Bounds how many processes and threads an agent may have at a time, where the host lets us.

An ordinary user can only bound what lives in a user namespace of its own: the kernel counts
RLIMIT_NPROC there. Root is exempt from that limit and needs the `pids` controller of cgroups, which
in many containers is read-only: then there is no bound, and only the time ends a fork bomb.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PROCESSES = 2000
_CGROUPS = Path("/sys/fs/cgroup")


class ProcessBound(Protocol):
    """A way to bound; thread-safe."""

    @property
    def folder(self) -> Path | None:
        """Folder of control groups, to be removed should this process be killed."""
        ...

    def put_on(self, pid: int, tag: int) -> None:
        """Bound a process and whatever it will start; what can't be bound is left unbounded."""
        ...

    def take_off(self, tag: int) -> None:
        """Forget an agent whose processes are all gone; missing is success."""
        ...

    def close(self) -> None:
        """Remove what was made; idempotent."""
        ...


def find_process_bound(*, has_user_namespace: bool) -> ProcessBound | None:
    """Return what works here; None where nothing does.

    Args:
        has_user_namespace: each agent gets one of its own.
    """
    if os.geteuid() == 0:
        return CgroupBound.open()
    return NamespaceBound() if has_user_namespace else None


class NamespaceBound:
    """A limit on the first process of a user namespace; all others inherit it."""

    folder = None

    def put_on(self, pid: int, tag: int) -> None:
        """Set the limit."""
        with contextlib.suppress(OSError):  # it has ended already
            _, hard = resource.prlimit(pid, resource.RLIMIT_NPROC)
            bound = MAX_PROCESSES if hard == resource.RLIM_INFINITY else min(MAX_PROCESSES, hard)
            resource.prlimit(pid, resource.RLIMIT_NPROC, (bound, bound))

    def take_off(self, tag: int) -> None:
        """Nothing: the limit ended with the processes."""

    def close(self) -> None:
        """Nothing: nothing was made."""


class CgroupBound:
    """A control group for each agent, with version 1 of cgroups or 2; groups are used again.

    Joining one costs 0.05 ms, and 15 ms for the first after a pause, while the sandbox is set up.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._free: list[Path] = []
        self._used: dict[int, Path] = {}

    @classmethod
    def open(cls) -> CgroupBound | None:
        """Make a folder for the groups; None where that is not allowed or has no controller."""
        for place in _places():
            folder = place / f"proctor-{secrets.token_hex(8)}"
            try:
                folder.mkdir()
            except OSError:
                continue
            with contextlib.suppress(OSError):
                _enable(folder)
                return cls(folder)
            folder.rmdir()
        return None

    def put_on(self, pid: int, tag: int) -> None:
        """Move the agent's first process to a group of its own."""
        with contextlib.suppress(OSError):  # it has ended already
            group = self._used[tag] = self._free_group(tag)
            joined = os.open(group / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(joined, b"%d" % pid)
            finally:
                os.close(joined)

    def take_off(self, tag: int) -> None:
        """Keep the agent's group for another."""
        group = self._used.pop(tag, None)
        if group is not None:
            self._free.append(group)

    def _free_group(self, tag: int) -> Path:
        with contextlib.suppress(IndexError):  # another thread may take the last one
            return self._free.pop()
        group = self.folder / str(tag)
        group.mkdir()
        (group / "pids.max").write_text(str(MAX_PROCESSES), "ascii")
        return group

    def close(self) -> None:
        """Remove all groups that nobody is in."""
        with contextlib.suppress(OSError):
            for group in self.folder.iterdir():
                if group.is_dir():
                    group.rmdir()
            self.folder.rmdir()


def _places() -> Iterator[Path]:
    """Groups below which ours could be: this process's own, and the one above it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("ascii", "replace").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in {"", "pids"}:
                root = _CGROUPS / controllers
                own = root / path.lstrip("/")
                yield own
                if own != root:
                    yield own.parent


def _enable(folder: Path) -> None:
    """Make sure that groups below a new one can count processes.

    Raises:
        OSError: they can't.
    """
    if not (folder / "pids.max").exists():
        raise FileNotFoundError(str(folder / "pids.max"))
    control = folder / "cgroup.subtree_control"
    if control.exists():  # version 2 hands controllers on by name
        control.write_text("+pids", "ascii")
