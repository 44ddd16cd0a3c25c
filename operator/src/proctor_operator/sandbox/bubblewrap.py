"""Runs processes in bubblewrap: they see their own folders and what they need to execute, no more.

Bubblewrap itself starts with the process's environment and takes its options from a descriptor:
inside, both could be read in `/proc/1`. It dies with the thread that started it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_operator.sandbox.base import StopLevel
from proctor_operator.sandbox.bound import find_process_bound
from proctor_operator.sandbox.confined import ConfinedChild
from proctor_operator.sandbox.lineage import Lineage
from proctor_operator.sandbox.mounts import (
    Mount,
    Sight,
    fill_etc,
    linked_folders,
    mount_options,
    plan_mounts,
    sealing_options,
    sight_of,
    system_mounts,
    system_options,
)
from proctor_operator.sandbox.process import Ending, Watch
from proctor_operator.sandbox.program import (
    NotStartableError,
    find_program,
    refusal_of,
    start_problem,
)
from proctor_operator.sandbox.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from proctor_operator.sandbox.base import Command, ProcessEnd, Stop, View

_CONFINEMENT = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    # Not root inside either: several programs refuse to work as root.
    *("--uid", "1000", "--gid", "1000", "--hostname", "proctor"),
)
NO_NESTING = "--disable-userns"
"""Forbids user namespaces inside; bubblewrap has it since 0.8."""
_TMP = "/tmp"  # noqa: S108 - inside the sandbox, where it is the process's own
_SIGNALLED = 128
_LAST_SIGNAL = 31


class BubblewrapSandbox:
    """Every process in namespaces of its own."""

    name = "bwrap"

    def __init__(self, program: str, *, no_nesting: bool = True) -> None:
        """Make what all processes share.

        Args:
            program: absolute path of bubblewrap.
            no_nesting: whether it knows `NO_NESTING`.
        """
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="proctor-sandbox-"))
        etc = self._folder / "etc"
        etc.mkdir()
        fill_etc(etc)
        self._system = system_mounts()
        nesting = [NO_NESTING] if no_nesting else []
        self._first_options = _encoded([*_CONFINEMENT, *nesting, *system_options(etc)])
        self._bound = find_process_bound(has_user_namespace=True)
        self._lineage = Lineage(self._folder, self._bound.folder if self._bound else None)

    def run(self, command: Command, view: View, stop: Stop) -> ProcessEnd:
        """Run a process to its end; `TMPDIR` becomes `/tmp`, where its own folder lies."""
        with Recording(command) as recording:
            if stop.level is not StopLevel.NONE or self._lineage.is_closed:
                return recording.end(Ending.STOP)
            try:
                child = self._start(command, view, recording)
            except NotStartableError as error:
                return recording.end(start_error=str(error))
            recording.has_started()
            with child, self._lineage.led_by(child.process.pid):
                ending = Watch(child, command, view, stop).until_end(recording.captures)
                child.bury()
                recording.drain()
            return _end(recording, child, ending)

    def refusal(self, command: Command, view: View) -> str:
        """Why a command could not be started."""
        return refusal_of(command, self._sees(plan_mounts(view, self._system)))

    def close(self) -> None:
        """End everything that is left."""
        self._lineage.close()
        if self._bound is not None:
            self._bound.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, command: Command, view: View, recording: Recording) -> ConfinedChild:
        mounts = plan_mounts(view, self._system)
        program = find_program(command, self._sees(mounts))
        tag = self._lineage.new_tag()
        options = _options_file(self._options(command, view, mounts))
        status, status_writer = os.pipe()
        hold_reader, hold = os.pipe() if self._bound is not None else (None, None)
        inherited = [fd for fd in (options, status_writer, hold_reader) if fd is not None]
        arguments = [self._program, "--args", str(options), "--json-status-fd", str(status_writer)]
        if hold_reader is not None:
            arguments += ["--block-fd", str(hold_reader)]
        try:
            with self._lineage.tagged(tag):
                process = subprocess.Popen(
                    [*arguments, "--", program, *command.argv[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=recording.stdout,
                    stderr=recording.stderr,
                    cwd="/",
                    env=dict(command.env) | {"TMPDIR": _TMP},
                    pass_fds=inherited,
                    start_new_session=True,
                )
        except OSError as error:
            os.close(status)
            if hold is not None:
                os.close(hold)
            raise NotStartableError(start_problem(self._program, error)) from error
        finally:
            for descriptor in inherited:
                os.close(descriptor)
        bounded = None if hold is None or self._bound is None else (hold, self._bound)
        return ConfinedChild(process, status, bounded, self._lineage, tag)

    def _sees(self, mounts: Sequence[Mount]) -> Callable[[str], bool]:
        visible = (*self._system, *linked_folders(), *mounts)
        return lambda path: sight_of(path, visible) is not Sight.HIDE

    def _options(self, command: Command, view: View, mounts: Sequence[Mount]) -> bytes:
        own = [
            *([] if view.network else ["--unshare-net"]),
            *("--bind", str(view.tmp), _TMP),
            *mount_options(mounts),
            *sealing_options(mounts),
            *("--chdir", str(command.cwd)),
        ]
        return self._first_options + _encoded(own)


def _encoded(options: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(option) + b"\0" for option in options)


def _options_file(options: bytes) -> int:
    """A descriptor from which bubblewrap reads its options."""
    descriptor = os.memfd_create("options")
    os.pwrite(descriptor, options, 0)  # in place, so that reading begins at the start
    return descriptor


def _end(recording: Recording, child: ConfinedChild, ending: Ending) -> ProcessEnd:
    code = child.exit_code
    if code is not None:
        # Bubblewrap tells of a signal as a shell does.
        if _SIGNALLED < code <= _SIGNALLED + _LAST_SIGNAL:
            return recording.end(ending, signal=code - _SIGNALLED)
        return recording.end(ending, exit_code=code)
    launcher_code = child.process.returncode
    if launcher_code < 0:
        return recording.end(ending, signal=-launcher_code)
    text = recording.error_text().removeprefix("bwrap: ")
    return recording.end(
        ending, start_error=f"command can't be started in the sandbox: {text or launcher_code}"
    )
