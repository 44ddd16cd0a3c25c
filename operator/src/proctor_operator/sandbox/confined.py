"""One process in bubblewrap: three of the host's processes deep.

The launcher is our child and ends with the agent's exit code. Below it is the sandbox's init, its
PID 1: with it the kernel ends all that the agent ever started. Below that is the agent, its PID 2.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_operator.sandbox.lineage import reap

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from typing import Self

    from proctor_operator.sandbox.bound import ProcessBound
    from proctor_operator.sandbox.lineage import Lineage

_AGENT_PID = "2"
_STATUS_BYTES = 4096
_DEATH_SECONDS = 10.0


class ConfinedChild:
    """A started launcher. Belongs to one thread; on exit nothing of it lives.

    Attributes:
        exit_code: the agent's, 128 and more for a signal; None while it runs, and for good when it
            was never executed or the sandbox was killed. The agent can't forge it.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        status: int,
        bounded: tuple[int, ProcessBound] | None,
        lineage: Lineage,
        tag: int,
    ) -> None:
        """Take over a launcher.

        Args:
            process: the launcher.
            status: what it reports on; closed in the end.
            bounded: where a byte lets the agent start, and what bounds it before; None when nothing
                holds it back.
            lineage: of the sandbox.
            tag: what the launcher carries.
        """
        self.process = process
        self.pidfd = os.pidfd_open(process.pid)
        self.exit_code: int | None = None
        self._init: int | None = None
        self._status = status
        self._hold: int | None = None
        self._bound: ProcessBound | None = None
        if bounded is not None:
            self._hold, self._bound = bounded
        self._lineage = lineage
        self._tag = tag
        self._line = b""
        os.set_blocking(status, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bury()
        os.close(self.pidfd)
        os.close(self._status)
        if self._hold is not None:
            os.close(self._hold)
        if self._bound is not None:
            self._bound.take_off(self._tag)

    @property
    def pipes(self) -> Mapping[int, Callable[[], bool]]:
        """The status needs no watching unless the agent waits for us."""
        return {} if self._hold is None else {self._status: self.read_status}

    def read_status(self) -> bool:
        """Take in what the launcher has reported; False once it reports no more."""
        try:
            data = os.read(self._status, _STATUS_BYTES)
        except BlockingIOError:
            return True
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            self.exit_code = told.get("exit-code", self.exit_code)
            self._init = told.get("child-pid", self._init)
        if self._init is not None and self._hold is not None and self._bound is not None:
            self._bound.put_on(self._init, self._tag)
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                os.write(self._hold, b"!")
            os.close(self._hold)
            self._hold = None
        return bool(data)

    def ask(self) -> bool:
        """Send TERM to the agent itself: init would not pass it on."""
        self.read_status()
        agent = None if self._init is None else _agent_below(self._init)
        if agent is None:
            return False
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(agent)
            try:
                if self._init is not None and _agent_below(self._init) == agent:
                    signal.pidfd_send_signal(handle, signal.SIGTERM)
            finally:
                os.close(handle)
        return True

    def kill(self) -> None:
        """Kill the launcher; init follows it, and everything follows init."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def bury(self) -> None:
        """Return when the launcher and all below it are dead; idempotent.

        With the launcher's death its init became our child: nobody reuses its number before us.
        """
        if self.process.returncode is not None:
            return
        self.kill()
        self.process.wait()
        self.read_status()
        if self._init is None:
            # Killed before it could report: its init waits for it, unborn, and only has the tag.
            self._lineage.kill_orphans(self.process.pid, self._tag)
            return
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(self._init, os.WNOHANG) == (0, 0):
                # Init sets its death signal late; before that it would outlive the launcher.
                os.kill(self._init, signal.SIGKILL)
                reap(self._init, time.monotonic() + _DEATH_SECONDS)


def _agent_below(init: int) -> int | None:
    """The agent's number on the host while it lives."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{init}/task/{init}/children").read_text(encoding="ascii").split():
            if _number_inside(child) == _AGENT_PID:
                return int(child)
    return None


def _number_inside(pid: str) -> str:
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/status").open("rb") as file:
        for line in file:
            if line.startswith(b"NSpid:"):
                return line.split()[-1].decode("ascii")
    return ""
