"""Nobody reads, or the log's disk is full: the run goes on, and its exit code still tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cli import Proctor
from tests.e2e.make_set import read_task, write_set

pytestmark = pytest.mark.slow


@pytest.fixture
def proctor(tmp_path: Path) -> Proctor:
    return Proctor(tmp_path)


def run_with(proctor: Proctor, redirection: str, *options: str) -> int:
    """Run a set of many questions with the shell's redirection; returns the exit code."""
    eval_set = write_set(proctor.home / "asked", *(read_task(f"t{index}") for index in range(3)))
    command = f'"$@" {redirection}'
    done = subprocess.run(
        [
            *("bash", "-c", command, "bash", sys.executable, "-m", "proctor_operator.cli"),
            *("run", str(eval_set), "--sandbox", "none", *options),
        ],
        env=proctor.environment,
        cwd=proctor.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done.returncode


@pytest.mark.parametrize(
    ("redirection", "agent", "output"),
    [
        pytest.param("> >(:)", "oracle", "text", id="a-pipe-that-nobody-reads-as-stdout"),
        pytest.param("> >(:)", "none", "json", id="json-into-a-pipe-that-nobody-reads"),
        pytest.param("2> >(:)", "oracle", "text", id="a-pipe-that-nobody-reads-as-stderr"),
        pytest.param("> >(:) 2>&1", "none", "text", id="a-pipe-that-nobody-reads-as-both"),
        pytest.param("2> /dev/full", "oracle", "text", id="a-log-on-a-full-disk"),
        pytest.param(">&-", "none", "json", id="a-closed-stdout"),
        pytest.param("2>&-", "oracle", "text", id="a-closed-stderr"),
    ],
)
def test_exit_code_tells_the_runs_outcome_with(
    proctor: Proctor, redirection: str, agent: str, output: str
) -> None:
    code = run_with(proctor, redirection, "--agent", agent, "-o", output)
    assert code == {"oracle": 0, "none": 1}[agent]
    (run,) = (proctor.store / "runs" / "local").iterdir()
    assert (run / "run.json").exists()
