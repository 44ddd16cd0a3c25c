"""Running the real command line in a process of its own, with state and store of a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.stdout)


@dataclass(frozen=True)
class Proctor:
    """The command line with a state folder and a store below one folder."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.home / "state"

    @property
    def store(self) -> Path:
        """The store of runs that name none."""
        return self.home / "store"

    @property
    def environment(self) -> dict[str, str]:
        """What commands start with."""
        return os.environ | {
            "PROCTOR_STATE_DIR": str(self.state),
            "PROCTOR_STORE": str(self.store),
            "PYTHONWARNINGS": "default",
            **self.env,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command without waiting for it, as leader of a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "proctor_operator.cli", *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, timeout: float = 120) -> Finished:
        """Run a command to its end."""
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=timeout)
        return Finished(process.returncode, stdout, stderr)

    def branches(self) -> list[str]:
        """What is left in the folder of DuckDB branches."""
        folder = self.state / "branches"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return sorted(name for name in names if not name.startswith("."))

    def runs_held(self) -> list[str]:
        """Run folders that are left in the state folder."""
        folder = self.state / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def results(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Results of a finished run by task."""
        lines = (self.store / "runs" / "local" / run_id / "results.jsonl").read_text("utf-8")
        results = [json.loads(line) for line in lines.splitlines()]
        assert len({result["unit"] for result in results}) == len(results)
        return {result["task"]: result for result in results}
