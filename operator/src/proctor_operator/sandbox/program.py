"""Finds the program that an argument list names, the way its process would, and says why not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor_operator.sandbox.base import Command


class NotStartableError(Exception):
    """A command that can't be started; the text says why, for people."""


def refusal_of(command: Command, can_see: Callable[[str], bool] = lambda path: True) -> str:
    """Say why a command can't be started; empty when nothing stands in its way."""
    try:
        find_program(command, can_see)
    except NotStartableError as error:
        return str(error)
    return ""


def find_program(command: Command, can_see: Callable[[str], bool] = lambda path: True) -> str:
    """Return the absolute path of the command's program.

    Args:
        command: its own `PATH` counts, not the runner's.
        can_see: whether the process will see a path; what it won't see is passed over.

    Raises:
        NotStartableError: there is none, or none that can be seen or executed.
    """
    name = command.argv[0]
    folders = [""] if "/" in name else command.env.get("PATH", os.defpath).split(os.pathsep)
    unseen = unusable = ""
    for folder in folders:
        path = os.path.join(command.cwd, folder, name)
        if not os.path.isfile(path):
            continue
        if not os.access(path, os.X_OK):
            unusable = unusable or path
        elif can_see(path) and can_see(os.path.realpath(path)):
            return path
        else:
            unseen = unseen or path
    if unseen:
        raise NotStartableError(
            f"command not found in the sandbox: {name}: it lies at {os.path.realpath(unseen)}, "
            "which the sandbox does not show: hand its folder over with --agent-path"
        )
    if unusable:
        raise NotStartableError(f"command can't be executed: {unusable}: it lacks the x permission")
    raise NotStartableError(f"command not found: {name}")


def start_problem(name: str, error: OSError) -> str:
    """Say why the kernel refused to start a program that is there."""
    reason = (error.strerror or type(error).__name__).lower()
    if isinstance(error, FileNotFoundError):
        reason = "its interpreter or its working directory is not there"
    return f"command can't be started: {name}: {reason}"
