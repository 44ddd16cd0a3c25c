"""`load_set`: arguments, names, problems, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from proctor_grader import load_set
from proctor_grader.errors import UserError
from proctor_grader.formats import eval_json
from proctor_grader.jsontext import dump_json
from proctor_grader.problems import Severity
from tests.unit.formats.setfolder import told, write_set

ONE = '{"tasks":[{"id":"a","prompt_text":"x","gt":"1.50"}]}'
NO_MANIFEST = [("eval.json", "no eval.json at the repo root")]


@pytest.mark.parametrize("argument", ["set", "set/", "set/eval.json", "./set/.", "link"])
def test_a_folder_or_its_manifest(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(tmp_path, {"eval.json": ONE})
    (tmp_path / "link").symlink_to("set")
    monkeypatch.chdir(tmp_path)
    loaded = load_set(argument)
    assert loaded.errors == ()
    assert loaded.eval_set is not None
    assert loaded.name == loaded.eval_set.name == ("link" if argument == "link" else "set")
    assert [task.id for task in loaded.eval_set.tasks] == ["a"]


def test_the_current_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_set(tmp_path, {"eval.json": ONE}))
    assert load_set(".").name == "set"
    assert load_set("eval.json").name == "set"


def test_a_folder_whose_name_is_no_utf8_can_still_be_shown(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE}, folder="a\udcff")
    assert load_set(root).name == "a\ufffd"


def test_a_git_source_names_the_set(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE})
    assert load_set(root, source_url="https://h/acme/harbor.git").name == "harbor"
    assert load_set(root, source_url="https://h/.git").name == "set"


@pytest.mark.parametrize("argument", ["gone", "a\0b", "gone/eval.json", "set/dangling"])
def test_an_argument_that_is_not_there(argument: str, tmp_path: Path) -> None:
    write_set(tmp_path, {"eval.json": ONE}, {"dangling": "gone"})
    with pytest.raises(UserError) as caught:
        load_set(tmp_path / argument)
    assert caught.value.where.startswith(str(tmp_path))
    assert caught.value.remedy


def test_a_folder_that_may_not_be_read(tmp_path: Path, as_nobody: None) -> None:
    root = write_set(tmp_path, {"eval.json": ONE})
    root.chmod(0)
    try:
        with pytest.raises(UserError, match="permission denied"):
            load_set(root)
    finally:
        root.chmod(0o700)


def test_files_that_may_not_be_read(tmp_path: Path, as_nobody: None) -> None:
    manifest = {
        "setup": {"env_file": "s.env"},
        "tasks": [
            {"id": "a", "doc": "d.md", "gt": "1", "class": "write", "setup": "s.sh"},
            {"id": "b", "prompt_text": "x", "gt": "1"},
        ],
    }
    names = ("s.env", "prompts/a.txt", "d.md", "docs/b.md", "s.sh", "CLAUDE.md")
    root = write_set(tmp_path, {"eval.json": json.dumps(manifest)} | dict.fromkeys(names, "x"))
    for name in names:
        (root / name).chmod(0)
    loaded = load_set(root)
    denied = " (permission denied)"
    assert told(loaded.errors) == [
        ("setup.env_file", f"setup.env_file missing: s.env{denied}"),
        ("tasks[0].prompt", f"task a: prompt file missing: prompts/a.txt{denied}"),
        ("tasks[0].setup", f"task a: setup script not found: s.sh{denied}"),
        ("CLAUDE.md", f"CLAUDE.md cannot be read: CLAUDE.md{denied}"),
    ]
    assert told(loaded.warnings) == [
        ("tasks[0].doc", f"task a: doc file missing: d.md{denied}"),
        ("tasks[1].doc", f"task b: doc file missing: docs/b.md{denied}"),
    ]
    (root / "eval.json").chmod(0)
    assert told(load_set(root).errors) == [
        ("eval.json", "eval.json cannot be read: permission denied")
    ]


@pytest.mark.parametrize(
    ("files", "symlinks", "argument"),
    [
        pytest.param({"Eval.json": ONE}, {}, "Eval.json", id="another-spelling"),
        pytest.param({"a.txt": "x"}, {}, "", id="no-manifest"),
        pytest.param({"a.txt": "x", "eval.json": ONE}, {}, "a.txt", id="another-file-alone"),
    ],
)
def test_no_manifest(
    files: dict[str, str | bytes], symlinks: dict[str, str], argument: str, tmp_path: Path
) -> None:
    root = write_set(tmp_path, files, symlinks)
    loaded = load_set(root / argument, format="eval-json")
    assert told(loaded.errors) == NO_MANIFEST
    assert loaded.eval_set is None


@pytest.mark.parametrize("target", ["real.json", "gone", ".", "..", "eval.json"])
def test_a_manifest_that_is_a_link_as_argument(target: str, tmp_path: Path) -> None:
    root = write_set(tmp_path, {"real.json": ONE}, {"eval.json": target})
    loaded = load_set(root / "eval.json")
    assert told(loaded.errors) == [("eval.json", "symlinked paths are not allowed: eval.json")]


def test_another_file_as_argument_is_in_no_format(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE, "a.txt": "x"})
    [(where, message)] = told(load_set(root / "a.txt").errors)
    assert where == "."
    assert "no eval set found" in message


@pytest.mark.parametrize(("text", "format"), [("task_id: a", "tasks"), ("evals: []", "evals")])
def test_a_format_of_a_later_version(text: str, format: str, tmp_path: Path) -> None:
    root = write_set(tmp_path, {"a.yaml": text})
    for loaded in (load_set(root), load_set(root, format=format), load_set(root / "a.yaml")):
        [(where, message)] = told(loaded.errors)
        assert where == "."
        assert "reads eval-json sets only" in message
        assert format in message
        assert loaded.format == format


def test_an_unknown_format(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE})
    with pytest.raises(UserError, match=r"unknown format 'eval_json' \(did you mean 'eval-json'\?"):
        load_set(root, format="eval_json")


def test_a_given_format_is_not_questioned(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE, "a.yml": "evals: []"})
    assert load_set(root, format="eval-json").errors == ()
    assert load_set(root / "eval.json").errors == ()
    assert [where for where, _ in told(load_set(root).errors)] == ["."]


def test_the_normalised_form_of_a_set_that_could_not_be_read(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": "nope"})
    shown = load_set(root).to_json()
    assert shown["format"] == "eval-json"
    assert shown["name"] == "set"
    assert shown["tasks"] == []
    assert [problem["where"] for problem in shown["errors"]] == ["eval.json"]


def test_the_normalised_form_keeps_digits(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE})
    assert '"value": 1.50, "tolerance": 0.15' in dump_json(load_set(root).to_json())


def test_strict_moves_warnings_and_keeps_the_tasks(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": '{"x":1,"tasks":[{"id":"a","prompt_text":"x"}]}'})
    loaded = load_set(root, strict=True)
    assert loaded.warnings == ()
    assert [problem.where for problem in loaded.errors] == ["x", "tasks[0]"]
    assert {problem.severity for problem in loaded.errors} == {Severity.ERROR}
    assert loaded.eval_set is not None
    assert len(loaded.eval_set.tasks) == 1


def test_tasks_with_a_fault_are_left_out(tmp_path: Path) -> None:
    tasks = [{"id": "a", "prompt_text": "x", "gt": "1"}, {"id": "a", "prompt_text": "y"}, 5]
    root = write_set(tmp_path, {"eval.json": json.dumps({"tasks": tasks})})
    eval_set = load_set(root).eval_set
    assert eval_set is not None
    assert [(task.id, task.prompt) for task in eval_set.tasks] == [("a", "x")]


def test_instructions_and_environment_are_at_hand(tmp_path: Path) -> None:
    manifest = {"setup": {"env_file": "s.env"}, "tasks": [{"id": "a", "prompt_text": "x"}]}
    files: dict[str, str | bytes] = {
        "eval.json": json.dumps(manifest),
        "s.env": "# c\n A= 1=2 \r\nB='q' # no comment\nA=last\n",
        "CLAUDE.md": "\ufeffMind the grain.\n",
    }
    eval_set = load_set(write_set(tmp_path, files)).eval_set
    assert eval_set is not None
    assert eval_set.claude_md_text == "Mind the grain.\n"
    assert dict(eval_set.setup.env) == {"A": "last", "B": "'q' # no comment"}
    assert "last" not in dump_json(eval_set.to_json())


def test_a_manifest_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    root = write_set(tmp_path, {})
    with (root / "eval.json").open("wb") as manifest:
        manifest.truncate(100 * 1024 * 1024)
    assert told(load_set(root).errors) == [
        ("eval.json", "eval.json cannot be read: larger than 32 MiB")
    ]


def test_a_text_file_that_is_too_large(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": '{"tasks":[{"id":"a","gt":"1"}]}'})
    (root / "prompts").mkdir()
    with (root / "prompts/a.txt").open("wb") as prompt:
        prompt.truncate(9 * 1024 * 1024)
    [(where, message)] = told(load_set(root).errors)
    assert where == "tasks[0].prompt"
    assert message == "task a: prompt is too large: prompts/a.txt (larger than 8 MiB)"


def calls_of_loading(root: Path) -> int:
    """How many functions are called while a set is loaded, built-in ones included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        load_set(root)
    finally:
        sys.setprofile(None)
    return calls


def big_set(parent: Path, count: int) -> Path:
    tasks: list[dict[str, Any]] = []
    files: dict[str, str | bytes] = {"up.sh": "true"}
    for number in range(count):
        task: dict[str, Any] = {"id": f"t{number}", "covers": ["a.b"], "titel": "x"}
        task["checks"] = [{"value": number}]
        if number % 2:
            grade = {"kind": "model_rebuilt", "model": "a.b", "expect": {"row_count": number}}
            task |= {"class": "write", "setup": "up.sh", "grade": grade}
        if number % 5 == 0:
            task |= {"kind": 5, "doc": "../x"}
        tasks.append(task)
        files[f"prompts/t{number}.txt"] = "What?"
    parent.mkdir()
    return write_set(parent, {"eval.json": json.dumps({"tasks": tasks})} | files)


def test_loading_takes_time_linear_in_the_number_of_tasks(tmp_path: Path) -> None:
    few = calls_of_loading(big_set(tmp_path / "few", 40))
    many = calls_of_loading(big_set(tmp_path / "many", 400))
    assert many < 10.5 * few


def test_unknown_keys_get_a_bounded_number_of_suggestions(tmp_path: Path) -> None:
    unknown = {f"{number}_name": 1 for number in range(3000)}
    manifest = json.dumps({"tasks": [{"id": "a", "prompt_text": "x", "gt": "1"}]} | unknown)
    loaded = load_set(write_set(tmp_path, {"eval.json": manifest}))
    assert len(loaded.warnings) == 3000
    suggested = [problem for problem in loaded.warnings if "did you mean" in problem.message]
    assert len(suggested) == 1000


HEAVY = {
    *{"altair", "boto3", "duckdb", "jinja2", "kopf", "kubernetes", "markdown_it", "psycopg"},
    *{"pydantic", "rich", "sqlglot", "typer", "vl_convert", "yaml"},
    *{"proctor_grader.criteria", "proctor_grader.warehouse", "proctor_operator"},
}


def test_loading_imports_nothing_heavy(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"eval.json": ONE})
    script = (
        "import sys; from proctor_grader import load_set;"
        f"assert not load_set({str(root)!r}).errors;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_limit_of_a_manifest_fits_ten_thousand_tasks() -> None:
    assert eval_json.MAX_MANIFEST_BYTES / 10_000 > 3000
