"""Ends queries that take too long: one thread for the whole process, started at the first query.

A thread or timer for each query would cost more than most queries do.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import duckdb

_REPEAT_SECONDS = 0.5
_IDLE_SECONDS = 60.0


class Deadline:
    """Interrupts a connection once its time is over; use as a context manager.

    Attributes:
        passed: the time was over before the block ended.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self.connection = connection
        self.seconds = seconds
        self.due_at = 0.0
        self.passed = False

    def __enter__(self) -> Self:
        self.due_at = time.monotonic() + self.seconds
        _WATCHDOG.watch(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _WATCHDOG.forget(self)


class _Watchdog:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: set[Deadline] = set()
        self._wakes_at = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, deadline: Deadline) -> None:
        with self._changed:
            self._watched.add(deadline)
            if self._thread is None:
                self._wakes_at = deadline.due_at
                self._thread = threading.Thread(
                    target=self._run, name="proctor-duckdb-watchdog", daemon=True
                )
                self._thread.start()
            elif deadline.due_at < self._wakes_at:
                self._changed.notify()

    def forget(self, deadline: Deadline) -> None:
        # the thread interrupts while it holds the lock, so never the connection's next query
        with self._changed:
            self._watched.discard(deadline)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for deadline in self._watched:
                    if deadline.due_at <= now:
                        deadline.passed = True
                        deadline.connection.interrupt()
                        deadline.due_at = now + _REPEAT_SECONDS
                due = min((each.due_at for each in self._watched), default=now + _IDLE_SECONDS)
                self._wakes_at = due
                self._changed.wait(max(0.0, due - now))


_WATCHDOG = _Watchdog()
