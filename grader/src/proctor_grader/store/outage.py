"""How long a store that can't be reached is waited for.

All callers of a store share one clock: an outage has one deadline, so that what is asked for after
it fails at once instead of waiting anew, and it is told once.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying, wait_random_exponential

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_FIRST_WAIT_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 5.0


class Outage:
    """Repeats calls until they succeed or the outage has lasted too long; thread-safe."""

    def __init__(
        self,
        *,
        retry_seconds: float,
        is_outage: Callable[[BaseException], bool],
        on_outage: Callable[[BaseException], None],
    ) -> None:
        """Nothing is wrong yet.

        Args:
            retry_seconds: how long an outage is ridden out, counted from its first failed call.
            is_outage: whether an error may pass by itself.
            on_outage: called once per outage, in the thread that met it first, before it waits.
        """
        self._retry_seconds = retry_seconds
        self._is_outage = is_outage
        self._on_outage = on_outage
        self._lock = threading.Lock()
        self._began: float | None = None
        self._failed = 0.0
        self._told = False

    def ride_out(self, call: Callable[[], _T]) -> _T:
        """The call's result, or its last error when the outage does not end in time."""
        started = time.monotonic()
        retrying = Retrying(
            retry=self._must_repeat,
            stop=lambda _: self._is_over(started),
            wait=wait_random_exponential(multiplier=_FIRST_WAIT_SECONDS, max=_LONGEST_WAIT_SECONDS),
            before_sleep=self._tell,
            reraise=True,
        )
        return retrying(call)

    def _must_repeat(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if error is not None and self._is_outage(error):
            return True
        with self._lock:  # a refusal, too, is an answer: the store is there
            self._began = None
        return False

    def _is_over(self, started: float) -> bool:
        now = time.monotonic()
        with self._lock:
            # A failure long after the last one is a new outage: nobody asked in between.
            if self._began is None or now - self._failed > self._retry_seconds:
                self._began = now
                self._told = False
            self._failed = now
            return now - min(started, self._began) >= self._retry_seconds

    def _tell(self, state: RetryCallState) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told and state.outcome and (error := state.outcome.exception()):
            self._on_outage(error)
