"""Running the command line in this very process: no interpreter to start, so cases are cheap."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proctor_operator.cli.app import main
from tests.e2e.cli import Finished


@dataclass(frozen=True)
class Inside:
    """The command line with state, store and working folder of its own."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        """The store of commands that name none."""
        return self.home / ".proctor"

    def __call__(self, *arguments: str) -> Finished:
        """Run a command to its end; an exception that it lets through is the test's failure."""
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            self._as_process(arguments),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        code = ended.value.code
        return Finished(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with `-o json` and return what it prints."""
        done = self(*arguments, "-o", "json")
        assert done.code == code, done
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def _as_process(self, arguments: tuple[str, ...]) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("PROCTOR_STORE", "PROCTOR_WAREHOUSE"):
                patch.delenv(name, raising=False)
            patch.setenv("PROCTOR_STATE_DIR", str(self.home / "state"))
            for name, value in self.env.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["proctor", *arguments])
            before = os.getcwd()
            os.chdir(self.home)
            try:
                yield
            finally:
                os.chdir(before)
