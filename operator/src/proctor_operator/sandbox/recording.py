"""One run of one command: its captures, its clock, and the `ProcessEnd` that tells of it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from proctor_operator.sandbox.base import ProcessEnd
from proctor_operator.sandbox.output import Capture
from proctor_operator.sandbox.process import Ending

if TYPE_CHECKING:
    from typing import Self

    from proctor_operator.sandbox.base import Command

_HEAD_BYTES = 500


class Recording:
    """Belongs to one thread; on exit all its descriptors are closed.

    Attributes:
        captures: of standard output and, if it has a file of its own, of standard error.
    """

    def __init__(self, command: Command) -> None:
        self._began_at = datetime.now(UTC)
        self._began = time.monotonic()
        files = [command.stdout] if command.stderr is None else [command.stdout, command.stderr]
        self.captures = [Capture(file, command.max_output_bytes) for file in files]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for capture in self.captures:
            capture.close()

    @property
    def stdout(self) -> int:
        """What the process gets as standard output."""
        return self.captures[0].writer

    @property
    def stderr(self) -> int:
        """What the process gets as standard error."""
        return self.captures[-1].writer

    def has_started(self) -> None:
        """Let go of the process's ends of the pipes."""
        for capture in self.captures:
            capture.close_writer()

    def drain(self) -> None:
        """Take in what is left once the process is over."""
        for capture in self.captures:
            capture.drain()

    def error_text(self) -> str:
        """The first words on standard error."""
        return self.captures[-1].head(_HEAD_BYTES)

    def end(
        self,
        ending: Ending = Ending.NONE,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        start_error: str = "",
    ) -> ProcessEnd:
        """Put together how it went, now."""
        seconds = time.monotonic() - self._began
        return ProcessEnd(
            exit_code=exit_code,
            signal=signal,
            started_at=self._began_at,
            ended_at=self._began_at + timedelta(seconds=seconds),
            seconds=seconds,
            timed_out=ending is Ending.TIME,
            cancelled=ending is Ending.STOP,
            out_of_disk=ending is Ending.DISK,
            start_error=start_error,
            output_truncated=any(capture.truncated for capture in self.captures),
        )
