from __future__ import annotations

import fcntl
import os
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from proctor_grader.errors import WarehouseError
from proctor_grader.warehouse.base import Mark
from proctor_grader.warehouse.duckdb.marking import (
    made_mark,
    mark_path,
    marked_in,
    read_mark,
    remove_mark,
    taken_mark,
)
from tests.unit.warehouse.duckdbfile import MARK


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "eval-1"


def test_a_mark_lies_beside_the_folder_and_comes_back_whole(folder: Path) -> None:
    here = timezone(timedelta(hours=5, minutes=30))
    for mark in (MARK, Mark("é", "run \U0001f600", datetime(2031, 1, 1, 0, 0, 0, 5, tzinfo=here))):
        with made_mark(folder, mark):
            assert os.listdir(folder.parent) == ["eval-1.mark.json"]
        assert read_mark(folder) == mark
        remove_mark(folder)
    assert read_mark(folder) is None
    assert os.listdir(folder.parent) == []


def test_a_mark_is_never_overwritten(folder: Path) -> None:
    with made_mark(folder, MARK):
        pass
    with pytest.raises(FileExistsError), made_mark(folder, Mark("x", "y", MARK.expires)):
        pass
    assert read_mark(folder) == MARK
    assert os.listdir(folder.parent) == ["eval-1.mark.json"]


def test_a_mark_is_busy_while_it_is_held(folder: Path) -> None:
    with made_mark(folder, MARK):
        assert [r.busy for r in marked_in(folder.parent, "inst-a")] == [True]
        with (
            pytest.raises(WarehouseError, match="by somebody else") as caught,
            taken_mark(folder, seconds=0),
        ):
            pass
        assert caught.value.reason == "BranchBusy"
    with taken_mark(folder, seconds=0) as mark:
        assert mark == MARK
        assert [r.busy for r in marked_in(folder.parent, "inst-a")] == [True]
    assert [r.busy for r in marked_in(folder.parent, "inst-a")] == [False]


def test_who_waits_for_a_mark_sees_that_it_went_away(folder: Path) -> None:
    with made_mark(folder, MARK):
        pass
    found: list[Mark | None] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        with taken_mark(folder, seconds=30) as mark:
            found.append(mark)

    waiter = threading.Thread(target=wait)
    with taken_mark(folder, seconds=0):
        waiter.start()
        assert started.wait(30)
        remove_mark(folder)
    waiter.join(30)
    assert found == [None]


def test_a_mark_that_goes_away_while_it_is_being_locked_counts_as_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made_mark(folder, MARK):
        pass
    flock = fcntl.flock

    def dropped_meanwhile(handle: int, operation: int) -> None:
        remove_mark(folder)
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", dropped_meanwhile)
    with taken_mark(folder, seconds=30) as mark:
        assert mark is None


def test_marks_of_others_and_other_files_are_passed_over(folder: Path) -> None:
    for name, installation in (
        ("b", "inst-a"),
        ("a-2", "inst-a"),
        ("a", "inst-a"),
        ("c", "inst-b"),
    ):
        with made_mark(folder.with_name(name), Mark(installation, "run-1", MARK.expires)):
            pass
    mark_path(folder.with_name("damaged")).write_text("{")
    mark_path(folder.with_name("short")).write_text('{"installation": "inst-a", "run": "r"}')
    mark_path(folder.with_name("naive")).write_text(
        '{"installation": "inst-a", "run": "r", "expires": "2031-02-03T04:05:06"}'
    )
    mark_path(folder.with_name("folder")).mkdir()
    mark_path(folder.with_name("link")).symlink_to("a.mark.json")
    os.mkfifo(mark_path(folder.with_name("pipe")))
    (folder.parent / "notes.txt").touch()
    assert [r.name for r in marked_in(folder.parent, "inst-a")] == ["a", "a-2", "b"]
    assert marked_in(folder.parent / "none", "inst-a") == ()


def test_times_are_aware(folder: Path) -> None:
    with made_mark(folder, MARK):
        pass
    mark = read_mark(folder)
    assert mark is not None
    assert mark.expires.tzinfo is not None
    assert mark.expires == datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
