"""Copying a project without anything from outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor_grader.pod.project import copy_project


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A project beside a secret."""
    folder = tmp_path / "project"
    (folder / "models/deep").mkdir(parents=True)
    (folder / "models/deep/a.sql").write_bytes(b"select 1\r\n\xff")
    (folder / "run.sh").write_text("#!/bin/sh")
    (folder / "run.sh").chmod(0o755)
    (folder / "closed").write_text("x")
    (folder / "closed").chmod(0o600)
    (tmp_path / "secret").write_text("42")
    return folder


def test_files_keep_content_and_the_right_to_be_run(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"

    assert copy_project(source, target) == ()

    assert (target / "models/deep/a.sql").read_bytes() == b"select 1\r\n\xff"
    assert os.access(target / "run.sh", os.X_OK)
    assert (target / "closed").stat().st_mode & 0o777 == 0o644
    assert (target / "closed").stat().st_nlink == 1


def test_gits_own_files_stay_behind_wherever_they_are(source: Path, tmp_path: Path) -> None:
    (source / ".git").mkdir()
    (source / ".git/config").write_text("token")
    (source / "models/.git").write_text("gitdir: elsewhere")
    (source / ".gitignore").write_text("target/")

    copy_project(source, tmp_path / "copy")

    assert {path.name for path in (tmp_path / "copy").rglob(".git*")} == {".gitignore"}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("../secret", id="the-folder-above"),
        pytest.param("/etc/passwd", id="an-absolute-one"),
        pytest.param("{source}/run.sh", id="an-absolute-one-into-the-project"),
        pytest.param("models/../../secret", id="around-a-corner"),
        pytest.param("..", id="the-parent"),
        pytest.param(".git/config", id="what-is-not-copied"),
        pytest.param("outward", id="over-another-link"),
        pytest.param("link", id="itself"),
    ],
)
def test_links_that_lead_out_are_dropped_and_told(
    source: Path, tmp_path: Path, target: str
) -> None:
    (source / ".git").mkdir()
    (source / ".git/config").write_text("token")
    (source / "outward").symlink_to("../secret")
    (source / "link").symlink_to(target.format(source=source))

    assert copy_project(source, tmp_path / "copy") == ("link", "outward")
    assert not os.path.lexists(tmp_path / "copy/link")


@pytest.mark.parametrize("target", ["run.sh", "models", "./models/../run.sh", "missing"])
def test_links_inside_are_kept_as_links(source: Path, tmp_path: Path, target: str) -> None:
    (source / "link").symlink_to(target)

    copy_project(source, tmp_path / "copy")

    assert os.readlink(tmp_path / "copy/link") == target


def test_a_link_to_a_folder_is_not_walked_into(source: Path, tmp_path: Path) -> None:
    (source / "models/loop").symlink_to(".")

    copy_project(source, tmp_path / "copy")

    assert (tmp_path / "copy/models/loop").is_symlink()


def test_pipes_and_sockets_stay_behind(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe")

    copy_project(source, tmp_path / "copy")

    assert not (tmp_path / "copy/pipe").exists()


def test_the_set_is_cut_out_of_a_shared_repository(source: Path, tmp_path: Path) -> None:
    (source / "evals/gold").mkdir(parents=True)
    (source / "evals/gold/eval.json").write_text("42")
    (source / "peek").symlink_to("evals/gold/eval.json")
    (tmp_path / "alias").symlink_to(source / "evals")

    dropped = copy_project(source, tmp_path / "copy", exclude=tmp_path / "alias")

    assert dropped == ("peek",)
    assert not (tmp_path / "copy/evals").exists()


def test_a_set_that_is_the_project_leaves_nothing(source: Path, tmp_path: Path) -> None:
    copy_project(source, tmp_path / "copy", exclude=source)

    assert list((tmp_path / "copy").iterdir()) == []


def test_an_unrelated_folder_excludes_nothing(source: Path, tmp_path: Path) -> None:
    copy_project(source, tmp_path / "copy", exclude=tmp_path / "elsewhere")

    assert (tmp_path / "copy/run.sh").exists()
