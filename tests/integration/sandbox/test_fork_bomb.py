"""A fork bomb stays bounded: by a control group for root, by its user namespace for others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest

from proctor_operator.sandbox.bound import MAX_PROCESSES, CgroupBound
from proctor_operator.sandbox.bubblewrap import BubblewrapSandbox
from tests.integration.sandbox.agents import Unit

ROOT = Path(__file__).parents[3]
# Counts its own processes, since a shell gives up at the first fork that fails.
BOMB = """
import os, sys, time
made = 0
try:
    while made < 3 * int(sys.argv[1]):
        if os.fork() == 0: time.sleep(1000)
        made += 1
except OSError: pass
print(made)
"""
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def needs_groups() -> None:
    """Root, on a machine that lets it make control groups."""
    bound = CgroupBound.open() if os.geteuid() == 0 else None
    if bound is None:
        pytest.skip("needs root and a writable pids controller")
    bound.close()


@pytest.mark.usefixtures("needs_groups")
def test_a_fork_bomb_of_root_is_bounded(unit: Unit) -> None:
    end = unit.python(BOMB, str(MAX_PROCESSES), timeout_seconds=60)

    assert end.is_normal
    assert MAX_PROCESSES - 10 < int(unit.said()) < MAX_PROCESSES


@pytest.mark.usefixtures("needs_groups")
def test_no_control_group_is_left(unit: Unit) -> None:
    unit.shell("setsid sleep 1000 &")
    unit.run("no-such-agent")

    unit.sandbox.close()

    bound = cast("BubblewrapSandbox", unit.sandbox)._bound
    assert bound is not None
    assert bound.folder is not None
    assert not bound.folder.exists()


PROGRAM = """
import sys, tempfile
from dataclasses import replace
from pathlib import Path
from proctor_operator.sandbox import choose_sandbox
from proctor_operator.sandbox.bound import MAX_PROCESSES
from tests.integration.sandbox.agents import Unit
sandbox, _ = choose_sandbox("bwrap")
with tempfile.TemporaryDirectory() as folder:
    unit = Unit.make(sandbox, Path(folder, "unit"))
    unit.view = replace(unit.view, readable=())
    end = unit.run(sys.executable, "-I", "-c", sys.argv[1], str(MAX_PROCESSES), timeout_seconds=60)
    print(end.exit_code, unit.said().strip())
    unit.shell("trap '' TERM; setsid sleep 99 & sleep 99", timeout_seconds=0.3, grace_seconds=0.1)
    print(unit.shell("cat /proc/1/environ").exit_code)
sandbox.close()
"""


def test_a_fork_bomb_of_an_ordinary_user_is_bounded(bubblewrap_path: Path) -> None:
    """And the rest of the sandbox works for one as well."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None or not os.access(SYSTEM_PYTHON, os.X_OK):
        pytest.skip("needs root to become somebody else, and a system-wide Python")
    paths = [ROOT, ROOT / "operator/src", ROOT / "grader/src"]

    done = subprocess.run(
        [
            setpriv,
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            SYSTEM_PYTHON,
            "-c",
            PROGRAM,
            BOMB,
        ],
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(map(str, paths)), "HOME": "/"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    code, forks, second_code = done.stdout.split()
    assert (code, second_code) == ("0", "0")
    assert MAX_PROCESSES - 10 < int(forks) < MAX_PROCESSES
