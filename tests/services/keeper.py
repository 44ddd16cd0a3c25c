"""The process that starts a session's server and ends it when the session is over."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from tests.services.postgres import PostgresProcess
from tests.services.process import ServerProcess
from tests.services.s3 import S3Process
from tests.services.session import OWNER, locked

KINDS: dict[str, type[PostgresProcess] | type[S3Process]] = {
    "postgres": PostgresProcess,
    "s3": S3Process,
}


def keep(kind: str, folder: Path) -> None:
    """Start the server, say on stdout how to get in, and end it with the session's owner."""
    if os.fork():
        os._exit(0)  # whoever started us need not stay to collect us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with locked(folder / f"{kind}.keeper"):
        process = KINDS[kind](folder / kind)
        try:
            process.start()
            print(json.dumps(asdict(process.server), default=str), flush=True)
            _leave_stdout()
            _await_end(folder, process)
        finally:
            process.remove()


def _leave_stdout() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _await_end(folder: Path, process: ServerProcess) -> None:
    with locked(folder / OWNER):
        if not process.running:
            print(f"{process.name} ended before its session", file=sys.stderr)
