"""Sweeping beside living runs: only what belongs to runs that are gone is dropped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from proctor_grader.errors import WarehouseError
from proctor_grader.model.unit import RunId
from proctor_grader.warehouse.base import BranchAdapter, BranchRecord, Mark
from proctor_operator.local.state import STATE_DIR, LocalState
from proctor_operator.local.sweep import sweep

SERVER = "postgresql://h/base"


class Server:
    """A server with marked branches, by name; `on_list` happens just before they are listed."""

    location = SERVER

    def __init__(self, state: LocalState, on_list: Callable[[], None] = lambda: None) -> None:
        self._state = state
        self._on_list = on_list
        self.branches: dict[str, BranchRecord] = {}
        self.refuses_drop = False

    def make(self, name: str, run: str, *, lives_for: timedelta = timedelta(days=7)) -> None:
        expires = datetime.now(UTC) + lives_for
        self.branches[name] = BranchRecord(name, Mark(self._state.installation, run, expires))

    def list_marked(self) -> tuple[BranchRecord, ...]:
        self._on_list()
        return tuple(self.branches.values())

    def drop(self, name: str) -> None:
        if self.refuses_drop:
            raise WarehouseError("is in use", where=name)
        self.branches.pop(name, None)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalState:
    monkeypatch.setenv(STATE_DIR, str(tmp_path / "state"))
    return LocalState.open()


def adapter(server: Server) -> BranchAdapter:
    return cast("BranchAdapter", server)


def test_branch_of_a_run_that_starts_while_it_is_swept_stays(state: LocalState) -> None:
    started = []

    def start_run() -> None:
        if not started:
            started.append(state.hold(RunId("run-new"), {"warehouse": SERVER, "store": ""}))
            server.make("new", "run-new")

    server = Server(state, start_run)
    assert sweep(state, [adapter(server)]).dropped == []
    assert list(server.branches) == ["new"]
    started[0].release(remove=True)


def test_branch_whose_run_has_no_folder_or_whose_time_is_over_is_dropped(
    state: LocalState,
) -> None:
    server = Server(state)
    held = state.hold(RunId("run-alive"), {"warehouse": SERVER, "store": ""})
    server.make("young", "run-alive")
    server.make("old", "run-alive", lives_for=timedelta(days=-1))
    server.make("orphan", "run-without-folder")
    assert sweep(state, [adapter(server)]).dropped == [f"{SERVER}: old", f"{SERVER}: orphan"]
    assert list(server.branches) == ["young"]
    held.release(remove=True)


def test_folder_of_a_gone_run_stays_until_its_branches_are_dropped(state: LocalState) -> None:
    state.hold(RunId("run-gone"), {"warehouse": SERVER, "store": ""}).release(remove=False)
    server = Server(state)
    server.make("left", "run-gone")

    assert sweep(state, []).elsewhere == [SERVER]

    server.refuses_drop = True
    refused = sweep(state, [adapter(server)])
    assert (refused.runs, refused.dropped) == ([], [])
    assert all("is in use" in problem for problem in refused.problems)
    assert [path.name for path in state.runs.iterdir()] == ["run-gone"]

    server.refuses_drop = False
    assert sweep(state, [adapter(server)]).runs == ["run-gone"]
    assert list(state.runs.iterdir()) == []
