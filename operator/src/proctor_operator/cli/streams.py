"""Standard streams that are closed, broken or on a full disk: they never change how a verb ends."""

from __future__ import annotations

import os
import sys
from typing import IO


def open_standard_streams() -> None:
    """Open those that the caller closed on nothing: a file of ours must not get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def let_go_of_standard_streams() -> None:
    """Flush what nobody may read any more; Python would do it last, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            silence(stream)


def silence(stream: IO[str]) -> None:
    """Let what is still held back for a broken stream, and all that follows, go nowhere."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
