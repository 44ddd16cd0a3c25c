"""What an agent is given, and what it is not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from proctor_grader import contract
from proctor_grader.pod.prepare import AgentInput, Layout, base_environment, prepare_agent

GIVEN = AgentInput(task="t/1", prompt="How many?", variant="default", trial=1)


def prepared(folder: Path, given: AgentInput) -> tuple[Layout, dict[str, str]]:
    layout = Layout(folder / "unit")
    return layout, prepare_agent(layout, given)


@pytest.mark.parametrize(
    ("preamble", "prompt", "delivered"),
    [
        pytest.param("", "  How\tmany?\r\n\n", b"  How\tmany?\r\n\n", id="byte-for-byte"),
        pytest.param("Be brief.", "How many?", b"Be brief.\n\nHow many?", id="a-blank-line"),
        pytest.param(
            "Be brief.\n\n\n", "How many?", b"Be brief.\n\nHow many?", id="one-blank-line"
        ),
        pytest.param(" \n", "How many?", b"How many?", id="a-blank-preamble-is-none"),
        pytest.param("", "$(HOME) `id` é", "$(HOME) `id` é".encode(), id="nothing-is-expanded"),
        pytest.param("", "\ud800", b"?", id="half-a-character"),
    ],
)
def test_the_prompt_is_a_file(tmp_path: Path, preamble: str, prompt: str, delivered: bytes) -> None:
    _, environment = prepared(tmp_path, replace(GIVEN, preamble=preamble, prompt=prompt))

    assert Path(environment[contract.PROMPT_FILE]).read_bytes() == delivered


def test_the_environment_is_an_allow_list_and_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("LANG", "TZ", "SECRET", "PYTHONPATH", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, name.lower())
    monkeypatch.setenv("PATH", "/usr/bin")

    layout, environment = prepared(tmp_path, replace(GIVEN, variant="v", trial=2))

    assert environment == {
        "PATH": "/usr/bin",
        "LANG": "lang",
        "TZ": "tz",
        "HOME": str(layout.home),
        "TMPDIR": str(layout.tmp),
        "PROCTOR_PROMPT_FILE": str(layout.prompt),
        "PROCTOR_WORKDIR": str(layout.work),
        "PROCTOR_OUTPUT": str(layout.output),
        "PROCTOR_TASK": "t/1",
        "PROCTOR_VARIANT": "v",
        "PROCTOR_TRIAL": "2",
    }
    assert all(Path(environment[name]).is_dir() for name in ("HOME", "TMPDIR", "PROCTOR_OUTPUT"))


def test_the_branch_is_named_twice_and_never_by_the_user(tmp_path: Path) -> None:
    own = {"PROCTOR_WAREHOUSE_DSN": "mine", "SP_WAREHOUSE_DSN": "mine", "PROCTOR_TASK": "mine"}
    _, with_branch = prepared(tmp_path / "a", replace(GIVEN, dsn="postgresql://x", extra_env=own))
    _, without = prepared(tmp_path / "b", replace(GIVEN, extra_env=own))

    assert with_branch["PROCTOR_WAREHOUSE_DSN"] == "postgresql://x"
    assert with_branch["SP_WAREHOUSE_DSN"] == "postgresql://x"
    assert "PROCTOR_WAREHOUSE_DSN" not in without
    assert "SP_WAREHOUSE_DSN" not in without
    assert without["PROCTOR_TASK"] == "t/1"


def test_what_the_user_hands_over_arrives(tmp_path: Path) -> None:
    _, environment = prepared(
        tmp_path,
        replace(GIVEN, extra_env={"API_KEY": "k", "HOME": "/elsewhere"}, paths=(Path("/opt/a"),)),
    )

    assert environment["API_KEY"] == "k"
    assert environment["HOME"] == "/elsewhere"
    assert environment["PATH"].startswith("/opt/a:")


def test_without_a_path_there_is_a_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PATH")

    assert base_environment(Layout(tmp_path))["PATH"] == os.defpath


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with instructions of its own."""
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models/a.sql").write_text("select 1")
    (folder / "CLAUDE.md").write_text("the project's")
    return folder


def test_the_instructions_lie_over_the_project(tmp_path: Path, project: Path) -> None:
    layout, _ = prepared(tmp_path, replace(GIVEN, project=project, instructions="the set's\n"))

    assert (layout.work / "models/a.sql").read_text() == "select 1"
    assert (layout.work / "CLAUDE.md").read_bytes() == b"the set's\n"
    assert (project / "CLAUDE.md").read_text() == "the project's"


def test_the_instructions_go_through_no_link_of_the_project(tmp_path: Path, project: Path) -> None:
    (project / "CLAUDE.md").unlink()
    (project / "CLAUDE.md").symlink_to("models/a.sql")

    layout, _ = prepared(tmp_path, replace(GIVEN, project=project, instructions="the set's"))

    assert (layout.work / "models/a.sql").read_text() == "select 1"
    assert not (layout.work / "CLAUDE.md").is_symlink()


def test_empty_instructions_are_a_file(tmp_path: Path) -> None:
    layout, _ = prepared(tmp_path, replace(GIVEN, instructions=""))

    assert (layout.work / "CLAUDE.md").read_bytes() == b""


def test_a_bare_attempt_has_empty_folders(tmp_path: Path) -> None:
    layout, _ = prepared(tmp_path, GIVEN)

    assert [path.name for path in layout.root.rglob("*") if not path.is_dir()] == ["prompt.txt"]
    assert not layout.before.differs_from(layout.work)


def test_an_attempts_folder_is_never_used_twice(tmp_path: Path) -> None:
    prepared(tmp_path, GIVEN)

    with pytest.raises(FileExistsError):
        prepared(tmp_path, GIVEN)
