"""Watches one started process to its end: its output, its time, its disk, and whoever stops it.

The thread that started the process does all of it with one poll: no other thread, no signal
handler. Nothing here knows how a process is started or confined.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from proctor_operator.sandbox.base import StopLevel
from proctor_operator.sandbox.disk import exceeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from proctor_operator.sandbox.base import Command, Stop, View
    from proctor_operator.sandbox.output import Capture

_DISK_SECONDS = 1.0
_DISK_SHARE = 10


class Ending(Enum):
    """Why a process was made to end; NONE when it ended by itself."""

    NONE = "none"
    TIME = "time"
    DISK = "disk"
    STOP = "stop"


class Child(Protocol):
    """A started process as its watcher needs it."""

    @property
    def pidfd(self) -> int:
        """Becomes readable when the process ends."""
        ...

    @property
    def pipes(self) -> Mapping[int, Callable[[], bool]]:
        """More descriptors to read: what to call; False once there is no more to come."""
        ...

    def ask(self) -> bool:
        """Send TERM to the agent itself; False when it can't be found."""
        ...

    def kill(self) -> None:
        """Send KILL to all of it."""
        ...


class Watch:
    """One process from its start to its end. Belongs to one thread."""

    def __init__(self, child: Child, command: Command, view: View, stop: Stop) -> None:
        self._ending = Ending.NONE
        self._child = child
        self._stop = stop
        self._grace_seconds = command.grace_seconds
        self._folders = (*view.writable, view.tmp)
        self._max_disk_bytes = view.max_disk_bytes
        now = time.monotonic()
        self._deadline = now + command.timeout_seconds
        self._disk_at = now + _DISK_SECONDS
        self._kill_at: float | None = None
        self._killed = False

    def until_end(self, captures: Sequence[Capture]) -> Ending:
        """Return why the process ended, once it has; what it started may still live."""
        handlers: dict[int, Callable[[], bool]] = {c.reader: c.pump for c in captures}
        handlers |= self._child.pipes
        poll = select.poll()
        with _wake_from(self._stop) as wake:
            handlers[wake] = lambda: os.eventfd_read(wake) > 0
            for descriptor in (self._child.pidfd, *handlers):
                poll.register(descriptor, select.POLLIN)
            self._look()
            while True:
                ready = [descriptor for descriptor, _ in poll.poll(self._wait_milliseconds())]
                for descriptor in ready:
                    if descriptor in handlers and not handlers[descriptor]():
                        poll.unregister(descriptor)
                if self._child.pidfd in ready:
                    return self._ending
                self._look()

    def _wait_milliseconds(self) -> float | None:
        if self._killed:
            return None
        due = min(self._deadline, self._disk_at) if self._kill_at is None else self._kill_at
        return max(0.0, due - time.monotonic()) * 1000

    def _look(self) -> None:
        """Do what is due."""
        if self._killed:
            return
        now = time.monotonic()
        if self._stop.level is StopLevel.KILL or (
            self._kill_at is not None and now >= self._kill_at
        ):
            self._end(Ending.STOP)
            self._kill()
        elif self._kill_at is not None:
            return
        elif self._stop.level is StopLevel.CANCEL:
            self._end(Ending.STOP)
        elif now >= self._deadline:
            self._end(Ending.TIME)
        elif now >= self._disk_at:
            self._measure(now)

    def _measure(self, now: float) -> None:
        if exceeds(self._folders, self._max_disk_bytes):
            self._end(Ending.DISK)
        # A large tree takes long to measure: spend a small share of the time on it.
        took = time.monotonic() - now
        self._disk_at = now + max(_DISK_SECONDS, took * _DISK_SHARE)

    def _end(self, ending: Ending) -> None:
        """Ask the process to end; the first reason is the one that counts."""
        if self._ending is not Ending.NONE:
            return
        self._ending = ending
        self._kill_at = time.monotonic() + self._grace_seconds
        if self._grace_seconds <= 0 or not self._child.ask():
            self._kill()

    def _kill(self) -> None:
        if not self._killed:
            self._killed = True
            self._child.kill()


@contextlib.contextmanager
def _wake_from(stop: Stop) -> Iterator[int]:
    """An eventfd that becomes readable when somebody raises the level of `stop`."""
    wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    try:
        stop.attach(wake)
        yield wake
    finally:
        stop.detach()
        os.close(wake)
