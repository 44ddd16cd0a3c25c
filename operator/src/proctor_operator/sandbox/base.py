"""What a sandbox is: it runs one process to its end and leaves nothing of it running."""

from __future__ import annotations

import os
from enum import IntEnum
from threading import RLock
from typing import Protocol

from proctor_grader.model.process import Command, ProcessEnd, View

__all__ = ["Command", "ProcessEnd", "Sandbox", "Stop", "StopLevel", "View"]


class StopLevel(IntEnum):
    """How firmly a process is asked to end; it only ever rises."""

    NONE = 0
    CANCEL = 1
    KILL = 2


class Stop:
    """Asks one run of a process to end. Any thread, before, during or after; also in a handler.

    A run that has not begun ends before it starts anything.
    """

    def __init__(self) -> None:
        # Reentrant, because a signal handler may interrupt the very thread that holds it.
        self._lock = RLock()
        self._level = StopLevel.NONE
        self._wake: int | None = None

    @property
    def level(self) -> StopLevel:
        """What was asked so far."""
        return self._level

    def cancel(self) -> None:
        """Ask for the end: TERM, and KILL once the grace is over."""
        self._raise_to(StopLevel.CANCEL)

    def kill(self) -> None:
        """End it at once."""
        self._raise_to(StopLevel.KILL)

    def attach(self, wake: int) -> None:
        """Signal this eventfd from now on whenever the level rises; it may have risen before."""
        with self._lock:
            self._wake = wake

    def detach(self) -> None:
        """Forget the eventfd; afterwards it may be closed."""
        with self._lock:
            self._wake = None

    def _raise_to(self, level: StopLevel) -> None:
        with self._lock:
            self._level = max(self._level, level)
            if self._wake is not None:
                os.eventfd_write(self._wake, 1)


class Sandbox(Protocol):
    """Runs processes; thread-safe. Use one thread that outlives the process for each of them.

    (The kernel ties a child's life to the thread that started it, not to the whole process.)
    """

    @property
    def name(self) -> str:
        """`bwrap` or `none`."""
        ...

    def run(self, command: Command, view: View, stop: Stop) -> ProcessEnd:
        """Run a process to its end; returns when nothing that it started is left.

        A command that can't be started is an end with a `start_error`, no exception. In a closed
        sandbox every command is cancelled before it starts.
        """
        ...

    def refusal(self, command: Command, view: View) -> str:
        """Why a command could not be started, for people; empty when it could. Starts nothing."""
        ...

    def close(self) -> None:
        """End everything that is left and remove what the sandbox made for itself; idempotent."""
        ...
