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
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from proctor_operator.sandbox import warden
from proctor_operator.sandbox.warden import kill_tagged, tag_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RLIMIT_LOCKS = 10
_TAGS = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_SECONDS = 10.0
_WAITED_SECONDS = 5.0
_ZOMBIE = "Z"

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
    """The processes of one sandbox, each agent with a tag of its own; thread-safe."""

    def __init__(self, folder: Path | None = None) -> None:
        """Start watching.

        Args:
            folder: of the sandbox itself, to be removed should this process be killed.
        """
        become_subreaper()
        self._first = secrets.randbits(40) * _TAGS
        self._numbers = itertools.count(1)
        self._leaders: set[int] = set()
        self._dead_since: dict[int, float] = {}
        self._warden = self._start_warden(folder)

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
        while True:
            orphans = [child for child in map(_child, self._orphans(leader)) if child]
            ours = [child for child in orphans if child.belongs_to(leader, tag)]
            if not ours:
                self._reap_strangers(orphans)
                return True
            for child in ours:
                with contextlib.suppress(OSError):
                    os.kill(child.pid, signal.SIGKILL)
            for child in ours:
                reap(child.pid, deadline)
            if time.monotonic() > deadline:
                return False

    def _orphans(self, leader: int) -> list[int]:
        """Children of this process without those that this lineage has started itself."""
        known = self._leaders | {leader, self._warden.pid}
        return [pid for pid in _children() if pid not in known]

    def close(self) -> None:
        """Kill whatever still carries one of the tags and let the warden go; idempotent."""
        if self._warden.returncode is not None:
            return
        with _starting:
            kill_tagged(self._first, self._first + _TAGS - 1)
        self._reap_strangers([child for child in map(_child, self._orphans(0)) if child])
        with contextlib.suppress(BrokenPipeError):
            self._warden.communicate(b"!")

    def _reap_strangers(self, children: Sequence[_Child]) -> None:
        """Take note of the death of orphans that ended before their agent did.

        The dead have no tag. What leads a session of its own may be a child that another part of
        this process waits for, so it gets time to do so.
        """
        now = time.monotonic()
        dead = [child for child in children if child.is_dead_stranger]
        self._dead_since = {child.pid: self._dead_since.get(child.pid, now) for child in dead}
        for child in dead:
            if child.session != child.pid or now - self._dead_since[child.pid] > _WAITED_SECONDS:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child.pid, os.WNOHANG)

    def _start_warden(self, folder: Path | None) -> subprocess.Popen[bytes]:
        arguments = (str(self._first), str(self._first + _TAGS - 1), str(folder or ""))
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


@dataclass(frozen=True, slots=True)
class _Child:
    pid: int
    state: str
    session: int

    def belongs_to(self, leader: int, tag: int) -> bool:
        return self.session == leader or tag_of(self.pid) == tag

    @property
    def is_dead_stranger(self) -> bool:
        """Whether it is dead and not of this process's own session, as a plain child would be."""
        return self.state == _ZOMBIE and self.session != os.getsid(0)


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


def _child(pid: int) -> _Child | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, parentheses too.
    fields = text[text.rindex(")") + 2 :].split()
    return _Child(pid, fields[0], int(fields[3]))
