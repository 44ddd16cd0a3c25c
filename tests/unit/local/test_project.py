"""The project tree that agents get holds nothing of the answer key."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor_grader import load_set
from proctor_grader.errors import RunError
from proctor_operator.local.project import fetch_project, refuse_answer_key

MANIFEST = '{"tasks": [{"id": "a", "prompt": "prompts/a.txt", "checks": [{"value": 1}]}]}'


@pytest.fixture
def set_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    (folder / "prompts").mkdir(parents=True)
    (folder / "docs").mkdir()
    (folder / "eval.json").write_text(MANIFEST, "utf-8")
    (folder / "prompts" / "a.txt").write_text("How many?", "utf-8")
    (folder / "docs" / "a.md").write_text("The gold is 1.", "utf-8")
    (folder / "CLAUDE.md").write_text("Be brief.", "utf-8")
    (folder / "blank.txt").write_text(" \n", "utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "stg_a.sql").write_text("select 1", "utf-8")
    return folder


def check(project: Path, set_dir: Path, source: Path | None = None) -> None:
    loaded = load_set(set_dir)
    assert loaded.eval_set is not None
    refuse_answer_key(project, set_dir, loaded.eval_set, source or project)


@pytest.mark.parametrize("secret", ["eval.json", "docs/a.md"])
def test_project_with_a_file_of_the_set_is_refused_and_both_are_named(
    project: Path, set_dir: Path, secret: str
) -> None:
    copy = project / "models" / "renamed.txt"
    copy.write_bytes((set_dir / secret).read_bytes())
    with pytest.raises(RunError) as refused:
        check(project, set_dir)
    assert "models/renamed.txt" in str(refused.value)
    assert secret in str(refused.value)


@pytest.mark.parametrize("told", ["prompts/a.txt", "CLAUDE.md", "blank.txt"])
def test_prompts_instructions_and_blank_files_are_no_secrets(
    project: Path, set_dir: Path, told: str
) -> None:
    (project / "same.txt").write_bytes((set_dir / told).read_bytes())
    check(project, set_dir)


def test_project_that_lies_in_the_set_is_no_secret_of_itself(set_dir: Path) -> None:
    inside = set_dir / "dbt"
    inside.mkdir()
    (inside / "model.sql").write_text("select 2", "utf-8")
    check(inside, set_dir, source=inside)


def test_local_folder_is_taken_as_it_is(set_dir: Path, project: Path, tmp_path: Path) -> None:
    assert fetch_project("../project", set_dir, tmp_path / "clone") == project.resolve()


@pytest.mark.parametrize(
    "url", ["../missing", "ssh://git@127.0.0.1/x.git", "file:///etc", "ext::sh -c true"]
)
def test_what_is_neither_https_nor_a_folder_is_refused(
    set_dir: Path, tmp_path: Path, url: str
) -> None:
    with pytest.raises(RunError, match="neither an https:// URL nor a folder"):
        fetch_project(url, set_dir, tmp_path / "clone")


def test_clone_that_fails_names_the_url_and_leaves_no_prompt(set_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"https://127\.0\.0\.1:1/x\.git"):
        fetch_project("https://127.0.0.1:1/x.git", set_dir, tmp_path / "clone")
