"""Which format a folder is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor_grader.formats import detect
from proctor_grader.formats.detect import detect_format
from proctor_grader.formats.repo import Repo
from proctor_grader.problems import ProblemLog
from tests.unit.formats.setfolder import told, write_set

TASK = "task_id: a\ninitial_prompt: x\n"
EVALS = "evals:\n  - id: a\n"


def found_in(
    tmp_path: Path,
    files: dict[str, str | bytes],
    symlinks: dict[str, str] | None = None,
    only: str | None = None,
) -> tuple[str | None, list[tuple[str, str]]]:
    problems = ProblemLog()
    with Repo(write_set(tmp_path, files, symlinks)) as repo:
        found = detect_format(repo, only, problems)
    return found, told(problems.problems)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        pytest.param({"eval.json": ""}, "eval-json", id="manifest"),
        pytest.param({"EVAL.Json": ""}, "eval-json", id="manifest-in-another-case"),
        pytest.param({"eval.json/x": ""}, "eval-json", id="manifest-that-is-a-folder"),
        pytest.param({"eval.json": "", "a.yml": "x: 1"}, "eval-json", id="other-yaml-is-no-matter"),
        pytest.param({"a.yaml": TASK}, "tasks", id="task-file"),
        pytest.param({"a/b/c.yml": EVALS}, "evals", id="eval-file-further-down"),
        pytest.param({"a.yml": "{version: 1, evals: null}"}, "evals", id="flow-mapping"),
        pytest.param({"a.yml": "'evals':\n- 1"}, "evals", id="quoted-key"),
        pytest.param({"a.yml": "? evals\n: - 1"}, "evals", id="complex-key"),
        pytest.param({"a.yml": "a: {task_id: x}\nevals: []"}, "evals", id="nested-key-is-none"),
        pytest.param({"a.yml": "a: task_id\nevals: []"}, "evals", id="value-is-no-key"),
        pytest.param({"a.yml": "a: [task_id, b]\nb: 1\nevals: []"}, "evals", id="entry-is-no-key"),
        pytest.param({"a.yml": "x: &a 1\n*a : task_id\nevals: 1"}, "evals", id="alias-as-key"),
        pytest.param({"a.yml": "evals: [\ntask_idx: 1"}, "evals", id="broken-yaml-by-its-lines"),
        pytest.param({"a.yml": b"\xff\ntask_id: x\n"}, "tasks", id="no-utf8-by-its-lines"),
        pytest.param({"a.yml": "- task_id\n- 1", "b.yml": EVALS}, "evals", id="a-list-is-none"),
        pytest.param({".h/a.yml": TASK, ".b.yml": TASK, "c.yml": EVALS}, "evals", id="hidden"),
        pytest.param({"proctor.yaml": TASK, "c.yml": EVALS}, "evals", id="run-file-is-skipped"),
        pytest.param({"x/proctor.yaml": TASK}, "tasks", id="run-file-elsewhere-counts"),
        pytest.param({"a.txt": TASK, "b.json": "{}", "c.yml": EVALS}, "evals", id="other-suffix"),
        pytest.param({"x/eval.json": "", "c.yml": EVALS}, "evals", id="manifest-further-down"),
    ],
)
def test_one_format(files: dict[str, str | bytes], name: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, files) == (name, [])


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"eval.json": "", "b.yml": EVALS}, ["eval-json (eval.json)", "evals (b.yml)"]),
        ({"a.yml": TASK, "b/c.yml": EVALS}, ["tasks (a.yml)", "evals (b/c.yml)"]),
        ({"a.yml": "task_id: 1\nevals: 2"}, ["tasks (a.yml)", "evals (a.yml)"]),
        ({"a.yml": "task_id: 1\n---\nevals: 2"}, ["tasks (a.yml)", "evals (a.yml)"]),
        (
            {"eval.json": "", "a.yml": TASK, "b.yml": EVALS, "c.yml": EVALS},
            ["eval-json (eval.json)", "tasks (a.yml)", "evals (b.yml)"],
        ),
    ],
)
def test_several_formats(files: dict[str, str | bytes], names: list[str], tmp_path: Path) -> None:
    found, [(where, message)] = found_in(tmp_path, files)
    assert found is None
    assert where == "."
    assert ", ".join(names) in message
    assert "--format" in message


@pytest.mark.parametrize(
    "files",
    [{}, {"a.yml": ""}, {"a.yml": "x: 1"}, {"a.yml": "[evals, task_id]"}, {"x/eval.json": "{}"}],
)
def test_no_format(files: dict[str, str | bytes], tmp_path: Path) -> None:
    found, [(where, message)] = found_in(tmp_path, files)
    assert found is None
    assert where == "."
    assert all(name in message for name in ("eval-json", "tasks", "evals"))


def test_links_are_no_yaml_files(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"real/a.txt": TASK, "b.yml": EVALS}
    assert found_in(tmp_path, files, {"a.yml": "real/a.txt"})[0] == "evals"


def test_a_manifest_that_is_a_link_counts(tmp_path: Path) -> None:
    assert found_in(tmp_path, {}, {"eval.json": "gone"}) == ("eval-json", [])


def test_one_file_alone_is_looked_at(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"eval.json": "", "a.yml": TASK, "b.yml": EVALS}
    assert found_in(tmp_path, files, only="b.yml") == ("evals", [])


def test_a_large_file_is_judged_by_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect, "MAX_PARSED_BYTES", 40)
    text = f"x: 1\n  # {'y' * 40}\ntask_id: a\n"
    assert found_in(tmp_path, {"a.yml": text}) == ("tasks", [])


def test_an_alias_bomb_is_not_built(tmp_path: Path) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
    assert found_in(tmp_path, {"a.yml": f"a0: &a0 1\n{levels}evals: []"}) == ("evals", [])
