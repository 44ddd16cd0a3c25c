"""A server process on loopback: started on a free port, awaited, ended with whoever started it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
PORTS_TRIED = 3


class ServerError(Exception):
    """A server did not start or did not end; the text shows the end of its log."""


def free_port() -> int:
    """A port that nobody listens on right now; another process may still be faster."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class ServerProcess(ABC):
    """One server with its data in a folder of its own.

    It dies with the thread that started it (PR_SET_PDEATHSIG, by ``setpriv``), so a killed test
    run leaves no server behind. ``stop`` and ``start`` keep port and data.
    """

    name: str
    end_signal = signal.SIGTERM
    death_signal = "KILL"
    account: str | None = None  # who runs it when we are root

    def __init__(self, folder: Path) -> None:
        """Nothing happens yet.

        Args:
            folder: made by the first start; its parents must admit the account.
        """
        self.folder = folder
        self.log_file = folder.with_suffix(".log")
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Make what the server needs before its first start; the folder exists."""

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments for the port in force."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether a client is served."""

    def environment(self) -> dict[str, str]:
        """What the server sees; never the caller's environment."""
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.folder)}

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Run the server and return when it answers; nothing when it runs already."""
        if self.running:
            return
        if self.port:
            self._launch()
            return
        self.folder.mkdir(mode=0o700)
        if self.account and os.geteuid() == 0:
            shutil.chown(self.folder, self.account, self.account)
        self.prepare()
        for tries_left in reversed(range(PORTS_TRIED)):
            self.port = free_port()
            try:
                self._launch()
                return
            except ServerError:
                if not tries_left:
                    raise

    def stop(self) -> None:
        """End the server in an orderly way; nothing when it does not run."""
        self._end(self.end_signal)

    def kill(self) -> None:
        """End the server as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start with the same port and data."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_as_account(self, command: list[str]) -> None:
        """Run a program to its end as the server's account.

        Raises:
            ServerError: it failed; the text has its output.
        """
        done = subprocess.run(
            self._as_account(command),
            env=self.environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerError(f"{self.name}: {command[0]} failed:\n{done.stdout}")

    def _as_account(self, command: list[str]) -> list[str]:
        if not self.account or os.geteuid() != 0:
            return command
        entry = pwd.getpwnam(self.account)
        ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        return ["setpriv", *ids, "--", *command]

    def _launch(self) -> None:
        # setpriv sets the death signal last: a change of user would clear it.
        switch = self._as_account(["setpriv", f"--pdeathsig={self.death_signal}", "--"])
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*switch, *self.command()],
                env=self.environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"{self.name} did not start:\n{self._log_end()}")
            time.sleep(0.02)
        if not self.running:  # someone else's server answers on that port
            raise ServerError(f"{self.name} ended at once:\n{self._log_end()}")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log_end(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file else []
        return "\n".join(lines[-20:])
