"""Whose child is whose: finds what an agent started even after it left session, group and parent.

Two means. The runner is a child subreaper: whatever loses its parent becomes the runner's child.
And every agent carries a tag, a soft limit that no kernel since 2.4.25 heeds (RLIMIT_LOCKS): unlike
a variable or a session it is inherited by all that it ever starts and survives `env -i setsid`.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import resource
import secrets
import select
import signal
import subprocess
import sys
import time
from threading import Lock
from typing import TYPE_CHECKING

from proctor_operator.sandbox import warden
from proctor_operator.sandbox.warden import kill_tagged, tag_of, tagged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_RLIMIT_LOCKS = 10
_TAGS = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_SECONDS = 10.0

# The tag is put on the runner itself for the moment of a start, so one start at a time.
_starting = Lock()


def become_subreaper() -> None:
    """Make this process the parent of whatever its descendants orphan; idempotent.

    Raises:
        OSError: the kernel refuses.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def reap(pid: int, deadline: float) -> bool:
    """Wait for the death of an adopted child; False when it still lives at the deadline.

    Args:
        pid: of a child that nobody else waits for.
        deadline: of the monotonic clock.
    """
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return True
        handle = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(handle)
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    return True


class Lineage:
    """The processes of one sandbox, each agent with a tag of its own; thread-safe.

    Attributes:
        is_closed: nothing may be started any more.
    """

    def __init__(self, *folders: Path | None) -> None:
        """Start watching.

        Args:
            *folders: of the sandbox itself, to be removed should this process be killed.
        """
        become_subreaper()
        self._first = secrets.randbits(40) * _TAGS
        self._numbers = itertools.count(1)
        self._leaders: set[int] = set()
        self._warden = self._start_warden([str(folder) for folder in folders if folder])
        self.is_closed = False

    def new_tag(self) -> int:
        """A tag that no other process has."""
        return self._first + next(self._numbers) % _TAGS

    @contextlib.contextmanager
    def tagged(self, tag: int) -> Iterator[None]:
        """What is started within the block carries the tag.

        Where the limit can't be set, nothing carries tags and only sessions tell who is who.
        """
        with _starting:
            soft, hard = resource.getrlimit(_RLIMIT_LOCKS)
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(_RLIMIT_LOCKS, (tag, hard))
            try:
                yield
            finally:
                resource.setrlimit(_RLIMIT_LOCKS, (soft, hard))

    @contextlib.contextmanager
    def led_by(self, leader: int) -> Iterator[None]:
        """Within the block this child is an agent itself and nobody's orphan."""
        self._leaders.add(leader)
        try:
            yield
        finally:
            self._leaders.discard(leader)

    def kill_orphans(self, leader: int, tag: int) -> bool:
        """Kill what an agent left, and take note of its death; False when some stay.

        Args:
            leader: the agent itself, ended and not yet waited for; it led a session.
            tag: the agent's.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while ours := [pid for pid in self._orphans(leader) if _belongs(pid, leader, tag)]:
            for pid in ours:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for pid in ours:
                reap(pid, deadline)
            if time.monotonic() > deadline:
                return False
        return True

    def _orphans(self, leader: int) -> list[int]:
        """Children of this process without those that this lineage has started itself."""
        known = self._leaders | {leader, self._warden.pid}
        return [pid for pid in _children() if pid not in known]

    def close(self) -> None:
        """Kill whatever still carries one of the tags and let the warden go; idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        first, last = self._first, self._first + _TAGS - 1
        with _starting:
            kill_tagged(first, last)
            for pid in set(tagged(first, last)) - self._leaders:  # those are waited for
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        with contextlib.suppress(BrokenPipeError):
            self._warden.communicate(b"!")

    def _start_warden(self, folders: Sequence[str]) -> subprocess.Popen[bytes]:
        arguments = (str(self._first), str(self._first + _TAGS - 1), *folders)
        with _starting:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", warden.__file__, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )


def _children() -> list[int]:
    """Numbers of this process's children, adopted ones too."""
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        # Plain calls, since it is done at the end of every agent.
        with contextlib.suppress(OSError):  # the thread has ended; its children are another's now
            listed = os.open(f"/proc/self/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
            with open(listed, "rb", buffering=0) as file:
                found += map(int, file.read().split())
    return found


def _belongs(pid: int, leader: int, tag: int) -> bool:
    """Whether a child comes from an agent; where no tag could be put on, its session tells."""
    if tag_of(pid) == tag:
        return True
    with contextlib.suppress(OSError):
        return os.getsid(pid) == leader
    return False
