"""A runner that is killed with -9 at any moment leaves nothing running."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.sandbox.agents import await_true, processes_with

ROOT = Path(__file__).parents[3]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(params=["none", "bwrap"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts runners; none outlives the test."""
    if request.param == "bwrap":
        request.getfixturevalue("bubblewrap_path")
    started: list[subprocess.Popen[bytes]] = []

    def begin(threads: int, *argv: str) -> subprocess.Popen[bytes]:
        folder = tmp_path / f"runner{len(started)}"
        folder.mkdir()
        paths = [ROOT, ROOT / "operator/src", ROOT / "grader/src"]
        runner = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.integration.sandbox.runner"),
                *(request.param, str(folder), str(threads), *argv),
            ],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            cwd=ROOT,
        )
        started.append(runner)
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        return runner

    yield begin
    for runner in started:
        runner.kill()
        runner.wait()
        assert runner.stdout is not None
        runner.stdout.close()


def test_agents_and_their_daemons_die_with_the_runner(start: Start, mark: str) -> None:
    runner = start(
        2, "sh", "-c", f"setsid sleep {mark} & (cd /; env -i setsid sleep {mark} &) ; sleep {mark}"
    )
    await_true(lambda: len(processes_with(mark)) >= 6)

    runner.send_signal(signal.SIGKILL)

    runner.wait()
    await_true(lambda: processes_with(mark) == [])


@pytest.mark.parametrize("step", range(8))
def test_whatever_is_just_being_started_dies_with_the_runner(
    start: Start, mark: str, step: int
) -> None:
    """The odds of a start at the very moment of the kill are high: starting is all it does."""
    runner = start(4, "sh", "-c", f"sleep {mark} & exit 0")
    select.select([], [], [], 0.05 + 0.0037 * step)  # moments that differ, nothing to wait for

    runner.send_signal(signal.SIGKILL)

    runner.wait()
    await_quiet(mark)


def test_the_sandboxes_folder_is_removed_all_the_same(
    start: Start, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    runner = start(1, "sleep", mark)
    await_true(lambda: processes_with(mark) != [])

    runner.send_signal(signal.SIGKILL)

    runner.wait()
    await_true(lambda: list(tmp_path.glob("proctor-sandbox-*")) == [])


def await_quiet(mark: str) -> None:
    """Wait until nothing with the mark has been seen for a while: it may not have begun yet."""
    quiet_since = time.monotonic()
    deadline = quiet_since + 20
    while time.monotonic() - quiet_since < 0.3:
        if processes_with(mark):
            quiet_since = time.monotonic()
        assert time.monotonic() < deadline, "something lives on"
