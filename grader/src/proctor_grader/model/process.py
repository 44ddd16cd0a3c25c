"""A process that is to be run, what it may see, and how it ended. Nothing here starts one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_DISK_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class Command:
    """One process: an argument list, never shell text.

    Attributes:
        argv: not empty; the first is a name on the `PATH` of `env`, or a path.
        env: the whole environment.
        stdout: file that takes the output; it appears with the first byte.
        stderr: None lets both streams share `stdout`.
        grace_seconds: between TERM and KILL.
        max_output_bytes: for each file; what comes after is read and dropped.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdout: Path
    stderr: Path | None
    timeout_seconds: float
    grace_seconds: float
    max_output_bytes: int


@dataclass(frozen=True, slots=True)
class View:
    """What a process may see of the file system; all paths absolute.

    Attributes:
        writable: its own folders, which count against `max_disk_bytes`.
        readable: folders and files it needs to execute and read.
        tmp: its own folder for temporary files, counted like `writable`.
        branch: folder of a warehouse branch that is a file; writable, not counted.
        hidden: what must not be seen even where it lies below something readable.
        network: whether the host's network is in reach.
    """

    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    tmp: Path
    branch: Path | None = None
    hidden: tuple[Path, ...] = ()
    network: bool = True
    max_disk_bytes: int = MAX_DISK_BYTES


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended and why; when this exists, nothing it started runs any more.

    Attributes:
        exit_code: None where a signal ended it or it never started; likewise `signal`.
        timed_out: its time was over before it ended; likewise `cancelled` (somebody asked),
            `out_of_disk` (it wrote too much): at most one of the three.
        start_error: why it never started, for people; empty when it did.
        output_truncated: more came out than was kept.
        started_at: aware UTC; likewise `ended_at`.
    """

    exit_code: int | None
    signal: int | None
    started_at: datetime
    ended_at: datetime
    seconds: float
    timed_out: bool = False
    cancelled: bool = False
    out_of_disk: bool = False
    start_error: str = ""
    output_truncated: bool = False

    @property
    def is_normal(self) -> bool:
        """Whether it ended by itself with code 0."""
        return self.exit_code == 0 and not (self.timed_out or self.cancelled or self.out_of_disk)

    def to_json(self) -> dict[str, Any]:
        """Return the facts as they stand in `exit.json`."""
        return {
            "exit_code": self.exit_code,
            "signal": self.signal,
            "timed_out": self.timed_out,
            "cancelled": self.cancelled,
            "out_of_disk": self.out_of_disk,
            "start_error": self.start_error,
            "output_truncated": self.output_truncated,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "seconds": round(self.seconds, 6),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ProcessEnd:
        """Read `exit.json` back."""
        return cls(
            exit_code=facts["exit_code"],
            signal=facts["signal"],
            timed_out=facts["timed_out"],
            cancelled=facts["cancelled"],
            out_of_disk=facts["out_of_disk"],
            start_error=facts["start_error"],
            output_truncated=facts["output_truncated"],
            started_at=datetime.fromisoformat(facts["started_at"]),
            ended_at=datetime.fromisoformat(facts["ended_at"]),
            seconds=float(facts["seconds"]),
        )
