"""Runs processes without a sandbox: bounded and cleaned up, but nothing is hidden from them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from proctor_operator.sandbox.base import StopLevel
from proctor_operator.sandbox.bound import find_process_bound
from proctor_operator.sandbox.lineage import Lineage
from proctor_operator.sandbox.process import Ending, Watch
from proctor_operator.sandbox.program import (
    NotStartableError,
    find_program,
    refusal_of,
    start_problem,
)
from proctor_operator.sandbox.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from proctor_operator.sandbox.base import Command, ProcessEnd, Stop, View


class BareSandbox:
    """Every process in a session of its own, its descendants found and ended by their lineage."""

    name = "none"

    def __init__(self) -> None:
        self._bound = find_process_bound(has_user_namespace=False)
        self._lineage = Lineage(self._bound.folder if self._bound else None)

    def run(self, command: Command, view: View, stop: Stop) -> ProcessEnd:
        """Run a process to its end."""
        tag = self._lineage.new_tag()
        with Recording(command) as recording:
            if stop.level is not StopLevel.NONE or self._lineage.is_closed:
                return recording.end(Ending.STOP)
            try:
                with self._lineage.tagged(tag):
                    child = _Child(_start(command, recording))
            except NotStartableError as error:
                return recording.end(start_error=str(error))
            recording.has_started()
            with child, self._lineage.led_by(child.process.pid):
                if self._bound is not None:
                    self._bound.put_on(child.process.pid, tag)
                ending = Watch(child, command, view, stop).until_end(recording.captures)
                # Before it is waited for: until then its number can't be another's.
                child.kill()
                self._lineage.kill_orphans(child.process.pid, tag)
                recording.drain()
            if self._bound is not None:
                self._bound.take_off(tag)
            code = child.process.returncode
            return recording.end(
                ending,
                exit_code=code if code >= 0 else None,
                signal=-code if code < 0 else None,
            )

    def refusal(self, command: Command, view: View) -> str:
        """Why a command could not be started."""
        del view  # nothing is hidden
        return refusal_of(command)

    def close(self) -> None:
        """End everything that is left."""
        self._lineage.close()
        if self._bound is not None:
            self._bound.close()


def _start(command: Command, recording: Recording) -> subprocess.Popen[bytes]:
    program = find_program(command)
    try:
        return subprocess.Popen(
            (program, *command.argv[1:]),
            stdin=subprocess.DEVNULL,
            stdout=recording.stdout,
            stderr=recording.stderr,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStartableError(start_problem(program, error)) from error


class _Child:
    """A process that leads a session; on exit it is dead and waited for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pidfd = os.pidfd_open(process.pid)
        self.pipes: Mapping[int, Callable[[], bool]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.kill()
            self.process.wait()
        os.close(self.pidfd)

    def ask(self) -> bool:
        """Send TERM to the agent alone, as a container's runtime does."""
        signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)
        return True

    def kill(self) -> None:
        """Kill its process group; a leader can't leave its own."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
