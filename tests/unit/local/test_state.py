"""The state folder: one lock a living run, an id that stays, folders that can always be removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proctor_grader.errors import RunError, UserError
from proctor_grader.model.unit import RunId
from proctor_operator.local.state import STATE_DIR, LocalState, remove_tree

RUN = RunId("run-20260101-000000-aaaaaa")
RECORD = {"warehouse": "", "store": "/store"}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalState:
    monkeypatch.setenv(STATE_DIR, str(tmp_path / "state"))
    return LocalState.open()


def test_installation_id_is_random_and_stays(state: LocalState, tmp_path: Path) -> None:
    assert state.installation == LocalState(state.root).installation
    assert state.installation != LocalState(tmp_path).installation


def test_state_folder_is_closed_to_others(state: LocalState) -> None:
    assert state.root.stat().st_mode & 0o077 == 0


def test_run_that_is_held_is_alive_and_can_not_be_held_twice(state: LocalState) -> None:
    held = state.hold(RUN, RECORD)
    assert state.alive() == {RUN}
    assert list(state.gone()) == []
    with pytest.raises(RunError, match="is running right now"):
        state.hold(RUN, RECORD)
    held.release(remove=True)
    assert state.alive() == frozenset()
    assert list(state.runs.iterdir()) == []


def test_run_whose_process_was_killed_is_gone(state: LocalState) -> None:
    code = (
        "import os, signal\n"
        "from proctor_operator.local.state import LocalState\n"
        f"held = LocalState.open().hold('{RUN}', {RECORD!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))
    (held,) = state.gone()
    assert held.folder.id == RUN
    assert held.folder.read_record() == RECORD
    held.release(remove=True)


def test_sweeper_never_takes_a_run_that_is_just_being_started(state: LocalState) -> None:
    is_over = threading.Event()

    def sweep() -> None:
        while not is_over.is_set():
            state.alive()
            for held in state.gone():
                held.release(remove=True)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for number in range(200):
            held = state.hold(RunId(f"run-{number}"), RECORD)
            assert held.folder.read_record() == RECORD
            held.release(remove=True)
    finally:
        is_over.set()
        sweeper.join()


def test_record_that_was_cut_off_reads_as_empty(state: LocalState) -> None:
    held = state.hold(RUN, RECORD)
    held.folder.record.write_text('{"wareh', "utf-8")
    assert held.folder.read_record() == {}
    held.release(remove=True)


def test_unusable_state_folder_is_the_users_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(STATE_DIR, str(tmp_path / "file" / "state"))
    with pytest.raises(UserError, match=STATE_DIR):
        LocalState.open()


def test_folder_that_an_agent_closed_and_linked_is_removed_and_its_links_not_followed(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    work = tmp_path / "work"
    closed = work / "a" / "closed"
    closed.mkdir(parents=True)
    (closed / "file").touch()
    (work / "link").symlink_to(outside)
    os.mkfifo(work / "pipe")
    closed.chmod(0)
    (work / "a").chmod(0o500)
    remove_tree(work)
    assert not work.exists()
    assert (outside / "kept").exists()
    remove_tree(work)


def test_folders_deeper_than_python_can_recurse_are_removed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    handle = os.open(work, os.O_RDONLY)
    for _ in range(2_000):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    remove_tree(work)
    assert not work.exists()
