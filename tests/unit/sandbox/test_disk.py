"""Measuring folders that somebody hostile has filled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor_operator.sandbox import disk
from proctor_operator.sandbox.disk import exceeds

MIB = 1024 * 1024


def test_all_folders_count_together(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        (folder / "deep").mkdir(parents=True)
        (folder / "deep/file").write_bytes(b"x" * MIB)

    assert exceeds(folders, 2 * MIB - 1)
    assert not exceeds(folders, 2 * MIB + 64 * 1024)
    assert not exceeds(folders[:1], MIB + 64 * 1024)


def test_a_sparse_file_weighs_what_it_takes(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1024 * MIB)

    assert not exceeds([tmp_path], MIB)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"x" * MIB)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/link").symlink_to("../outside")
    (tmp_path / "inside/loop").symlink_to(".")

    assert not exceeds([tmp_path / "inside"], MIB // 2)


def test_what_is_not_there_takes_no_room(tmp_path: Path) -> None:
    assert not exceeds([tmp_path / "missing"], 0)


def test_a_closed_folder_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)

    assert not exceeds([tmp_path], MIB)


@pytest.mark.parametrize("depth", [disk.MAX_DEPTH - 1, disk.MAX_DEPTH + 1])
def test_too_many_levels_are_too_much(tmp_path: Path, depth: int) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)

    assert exceeds([tmp_path], 1024 * MIB) == (depth > disk.MAX_DEPTH)


def test_too_many_names_are_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MAX_ENTRIES", 10)
    for number in range(11):
        (tmp_path / str(number)).touch()

    assert exceeds([tmp_path], MIB)
    (tmp_path / "10").unlink()
    assert not exceeds([tmp_path], MIB)
