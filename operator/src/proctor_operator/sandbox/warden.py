"""Ends what a killed runner leaves behind. Run as a file by itself: the standard library only.

A runner that gets SIGKILL can't clean up. This small process lives beside it, notices its death by
the end of a pipe, and ends every process that carries one of the runner's tags (see `lineage`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time

_PATIENCE_SECONDS = 10.0
_QUIET_ROUNDS = 5
_PAUSE_SECONDS = 0.002
_LIMIT_NAME = "Max file locks"


def tag_of(pid: int) -> int | None:
    """The tag a process carries until somebody has taken note of its death; None for none."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            for line in file:
                if line.startswith(_LIMIT_NAME):
                    soft = line[len(_LIMIT_NAME) :].split()[0]
                    return int(soft) if soft.isdecimal() else None
    except (OSError, ValueError):
        pass
    return None


def kill_tagged(first: int, last: int) -> bool:
    """Kill every process with a tag in the range until none is left; False when some stay.

    One round that finds nobody proves little: a process may fork after its number was listed and
    end before its tag was read. A daemon does so twice, hence several rounds in a row.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    rounds = 0
    while rounds < _QUIET_ROUNDS:
        found = [pid for pid in tagged(first, last) if not _is_dead(pid)]
        for pid in found:
            _kill(pid, first, last)
        if found and time.monotonic() > deadline:
            return False
        rounds = 0 if found else rounds + 1
        time.sleep(_PAUSE_SECONDS)
    return True


def tagged(first: int, last: int) -> list[int]:
    """Processes with a tag in the range, the dead that nobody has taken note of too."""
    processes = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [pid for pid in processes if first <= (tag_of(pid) or -1) <= last and pid != os.getpid()]


def _is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name stands in parentheses and may hold anything, parentheses too.
            return file.read().rpartition(")")[2].split()[0] in {"Z", "X"}
    except OSError:
        return True


def _kill(pid: int, first: int, last: int) -> None:
    """Kill a process that is still the one that carries the tag: numbers are used again."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if first <= (tag_of(pid) or -1) <= last:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def main(first: int, last: int, folders: list[str]) -> None:
    """Wait for the runner's end, then clean up; a byte before that end means all is clean."""
    if os.read(0, 1):
        return
    kill_tagged(first, last)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        # A control group's files can't be removed, only the group itself can.
        for below, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(below)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
