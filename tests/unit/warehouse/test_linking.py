"""Linking an agent's database for grading changes nothing of the host's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor_grader.warehouse.duckdb import files
from proctor_grader.warehouse.duckdb.files import NotADatabaseFile, link_database


@pytest.fixture
def branch(tmp_path: Path) -> Path:
    folder = tmp_path / "branch"
    folder.mkdir()
    return folder


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "reader"
    folder.mkdir()
    return folder


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_file_that_an_agent_closed_can_be_read_again(branch: Path, into: Path) -> None:
    (branch / "a.duckdb").write_bytes(b"x")
    (branch / "a.duckdb").chmod(0)
    link_database(branch, "a.duckdb", into)
    assert mode_of(into / "a.duckdb") == 0o600


def test_file_with_another_name_on_the_host_keeps_its_rights(
    branch: Path, into: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "passwd"
    outside.write_bytes(b"root")
    outside.chmod(0o644)
    os.link(outside, branch / "a.duckdb")
    link_database(branch, "a.duckdb", into)
    assert mode_of(outside) == 0o644


def test_name_that_becomes_a_link_between_looking_and_linking_is_not_followed(
    branch: Path, into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "passwd"
    outside.write_bytes(b"root")
    outside.chmod(0o644)
    database = branch / "a.duckdb"
    database.write_bytes(b"x")
    link = os.link

    def swapped(source: str, target: Path, **options: object) -> None:
        database.unlink()
        database.symlink_to(outside)
        link(source, target, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(files.os, "link", swapped)
    with pytest.raises(NotADatabaseFile, match="was replaced by a symbolic link"):
        link_database(branch, "a.duckdb", into)
    assert mode_of(outside) == 0o644
