from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor_grader.errors import TransientError
from proctor_grader.removal import remove_folder


def deep(folder: Path, levels: int) -> None:
    """Folders in folders, deeper than any path may be long."""
    handle = os.open(folder, os.O_RDONLY)
    for level in range(levels):
        name = f"{level % 10}" * 50
        os.mkdir(name, dir_fd=handle)
        inner = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


def test_whatever_an_agent_made_goes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    folder = tmp_path / "branch"
    folder.mkdir()
    (folder / "link-to-folder").symlink_to(outside)
    (folder / "link-to-file").symlink_to(outside / "precious")
    (folder / "loop").symlink_to("loop")
    os.link(outside / "precious", folder / "hard-link")
    os.mkfifo(folder / "pipe")
    (folder / "new\nline").write_text("")
    os.mkdir(os.fsencode(folder) + b"/\xff\xfe")
    closed = folder / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").write_text("")
    (closed / "inner" / "file").chmod(0)
    (closed / "inner").chmod(0)
    closed.chmod(0)
    folder.chmod(0)
    remove_folder(folder, seconds=60)
    assert not os.path.lexists(folder)
    assert (outside / "precious").read_text() == "mine"
    assert os.listdir(tmp_path) == ["outside"]


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    folder = tmp_path / "branch"
    folder.mkdir()
    deep(folder, 1200)
    before = len(os.listdir("/proc/self/fd"))
    remove_folder(folder, seconds=60)
    assert not folder.exists()
    assert len(os.listdir("/proc/self/fd")) == before


def test_wide_and_deep_folders(tmp_path: Path) -> None:
    folder = tmp_path / "branch"
    for first in range(8):
        for second in range(8):
            inner = folder / str(first) / str(second)
            inner.mkdir(parents=True)
            for name in range(8):
                (inner / str(name)).touch()
    remove_folder(folder, seconds=60)
    assert not folder.exists()


def test_missing_is_success(tmp_path: Path) -> None:
    remove_folder(tmp_path / "none", seconds=60)
    remove_folder(tmp_path / "none" / "none", seconds=60)


@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
def test_something_else_in_the_folders_place_goes_too(tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tmp_path / "branch"
    if kind == "link":
        place.symlink_to(outside)
    elif kind == "file":
        place.touch()
    else:
        os.mkfifo(place)
    remove_folder(place, seconds=60)
    assert not os.path.lexists(place)
    assert outside.exists()


def test_time_over_leaves_the_rest_for_the_next_try(tmp_path: Path) -> None:
    folder = tmp_path / "branch"
    folder.mkdir()
    (folder / "file").touch()
    with pytest.raises(TransientError, match="can't be removed") as caught:
        remove_folder(folder, seconds=-1)
    assert caught.value.where == str(folder)
    remove_folder(folder, seconds=60)
    assert not folder.exists()
