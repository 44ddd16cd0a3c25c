"""Runs agents and scripts: confined where bubblewrap works, and in any case to the very end.

No policy: what a process may see, how long it may take and what its end means is the caller's.
"""

from proctor_operator.sandbox.base import Command, ProcessEnd, Sandbox, Stop, StopLevel, View
from proctor_operator.sandbox.choose import choose_sandbox, python_view

__all__ = [
    "Command",
    "ProcessEnd",
    "Sandbox",
    "Stop",
    "StopLevel",
    "View",
    "choose_sandbox",
    "python_view",
]
