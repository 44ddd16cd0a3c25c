"""Measuring: wall time, processor time with that of all children, and what others took meanwhile.

On a shared machine wall time tells as much of the others as of us, so both are taken.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_TICKS = os.sysconf("SC_CLK_TCK")
_BUSY_CORES = 0.2


@dataclass(frozen=True)
class Cost:
    """What something took, in seconds.

    Attributes:
        cpu: user and system time of this process and of all children it has waited for.
        others: cores that other processes kept busy meanwhile, on average.
    """

    wall: float
    cpu: float
    others: float = 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether the wall time means something."""
        return self.others < _BUSY_CORES

    def to_json(self) -> dict[str, float]:
        return asdict(self)


class Stopwatch:
    """Runs from its making."""

    def __init__(self) -> None:
        self._wall = time.monotonic()
        self._cpu = _own_seconds()
        self._machine = _machine_seconds()

    def read(self) -> Cost:
        """Return what was spent since."""
        wall = time.monotonic() - self._wall
        cpu = _own_seconds() - self._cpu
        busy = _machine_seconds() - self._machine
        return Cost(wall, cpu, max(0.0, busy - cpu) / max(wall, 1e-9))


def timed(function: Callable[[], _T]) -> tuple[Cost, _T]:
    """Call a function; return what it took, and its value."""
    watch = Stopwatch()
    value = function()
    return watch.read(), value


def median(costs: Iterable[Cost]) -> Cost:
    """Return the median of each figure."""
    every = list(costs)
    return Cost(
        statistics.median(cost.wall for cost in every),
        statistics.median(cost.cpu for cost in every),
        statistics.median(cost.others for cost in every),
    )


def peak_memory_mb() -> float:
    """Return the most that this process ever held, not counting what it was forked from."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise LookupError("VmHWM")


def _own_seconds() -> float:
    return sum(os.times()[:4])


def _machine_seconds() -> float:
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text("ascii").partition("\n")[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / _TICKS
