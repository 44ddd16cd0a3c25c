"""A place for an agent to run in, and the means to see what it did without ever sleeping."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor_operator.sandbox import Command, ProcessEnd, Sandbox, Stop, View, python_view

PATIENCE_SECONDS = 20.0
PYTHON = sys.executable


@dataclass
class Unit:
    """An attempt's folder with a sandbox to run things in it."""

    sandbox: Sandbox
    folder: Path
    view: View
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": os.defpath})

    @classmethod
    def make(cls, sandbox: Sandbox, folder: Path) -> Unit:
        for name in ("work", "output", "home", "tmp", "input"):
            (folder / name).mkdir(parents=True)
        view = View(
            writable=(folder / "work", folder / "output", folder / "home"),
            readable=(folder / "input", *python_view()),
            tmp=folder / "tmp",
        )
        return cls(sandbox, folder, view)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def stdout(self) -> Path:
        return self.folder / "stdout.log"

    @property
    def stderr(self) -> Path:
        return self.folder / "stderr.log"

    def command(self, *argv: str, **changes: Any) -> Command:
        command = Command(
            argv=argv,
            env=self.environment,
            cwd=self.work,
            stdout=self.stdout,
            stderr=self.stderr,
            timeout_seconds=PATIENCE_SECONDS,
            grace_seconds=PATIENCE_SECONDS,
            max_output_bytes=1024 * 1024,
        )
        return replace(command, **changes)

    def run(self, *argv: str, stop: Stop | None = None, **changes: Any) -> ProcessEnd:
        return self.sandbox.run(self.command(*argv, **changes), self.view, stop or Stop())

    def shell(self, script: str, **changes: Any) -> ProcessEnd:
        return self.run("sh", "-c", script, **changes)

    def python(self, program: str, *arguments: str, **changes: Any) -> ProcessEnd:
        return self.run(PYTHON, "-I", "-c", program, *arguments, **changes)

    def said(self) -> str:
        return self.stdout.read_text("utf-8", "replace") if self.stdout.exists() else ""


class Bell:
    """A named pipe in an agent's working directory: one side rings, the other has waited for it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bell"
        os.mkfifo(self.path)
        # Read and write, so that opening waits for nobody and nobody's leaving is an end.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)

    def wait(self) -> bytes:
        """Return what the agent rang with."""
        ready, _, _ = select.select([self._pipe], [], [], PATIENCE_SECONDS)
        assert ready, "the agent never got there"
        return os.read(self._pipe, 4096)

    def ring(self) -> None:
        """Let the agent go on from its `read`."""
        os.write(self._pipe, b"\n")

    def close(self) -> None:
        os.close(self._pipe)


def await_true(question: Callable[[], bool]) -> None:
    """Ask until the answer is yes, for what the kernel tells nobody about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not question():
        assert time.monotonic() < deadline, "it never became true"
        os.sched_yield()


def processes_with(mark: str) -> list[int]:
    """Living processes whose command line holds a mark."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:  # the dead have none
            found.append(int(name))
    return found


def descriptors() -> set[str]:
    """Open descriptors of this process, as what they lead to."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name}:{os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            continue
    return found
