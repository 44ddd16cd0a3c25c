"""Replay files: what is accepted, what is refused with its place, who gets which entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor_grader.agents.recording import Recording, load_recording
from proctor_grader.agents.replay import ReplayEntry
from proctor_grader.errors import UserError
from proctor_grader.model.task import TaskClass, TaskId
from proctor_grader.model.unit import Unit, unit_id


def load(folder: Path, text: str, name: str = "answers.yaml") -> Recording:
    path = folder / name
    path.write_text(text, "utf-8")
    return load_recording(path)


def unit(task: str, variant: str = "default", trial: int = 1) -> Unit:
    return Unit(
        id=unit_id(TaskId(task), variant, trial),
        task_id=TaskId(task),
        task_class=TaskClass.READ,
        variant=variant,
        trial=trial,
    )


FULL = """
a:
  answer: "42"
  sql: [select 1, select 2]
  files: {models/x.sql: select 1}
  exit: 3
  sleep: 0.5
"""
ENTRY = ReplayEntry("42", ("select 1", "select 2"), {"models/x.sql": "select 1"}, 3, 0.5)


def test_an_entry_has_all_its_parts(tmp_path: Path) -> None:
    assert load(tmp_path, FULL).entry_for(unit("a")) == ENTRY


def test_json_says_the_same(tmp_path: Path) -> None:
    text = json.dumps({"a": ENTRY.to_json()})

    assert load(tmp_path, text, "a.json").entry_for(unit("a")) == ENTRY


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        pytest.param("yes", "yes", id="yes"),
        pytest.param("on", "on", id="on"),
        pytest.param("true", "true", id="true"),
        pytest.param("2024-01-31", "2024-01-31", id="a-date"),
        pytest.param("12:30:45", "12:30:45", id="a-time"),
        pytest.param("1.10", "1.10", id="a-trailing-zero"),
        pytest.param("0012", "0012", id="leading-zeros"),
        pytest.param("1_000", "1_000", id="an-underscore"),
        pytest.param("1e3", "1e3", id="an-exponent"),
        pytest.param(".inf", ".inf", id="infinity"),
        pytest.param("'null'", "null", id="a-quoted-null"),
        pytest.param("null", None, id="null"),
        pytest.param("~", None, id="a-tilde"),
        pytest.param("", None, id="nothing"),
        pytest.param('""', "", id="an-empty-text"),
        pytest.param("|\n    two\n    lines\n", "two\nlines\n", id="a-block"),
    ],
)
def test_an_answer_is_the_text_that_stands_there(
    tmp_path: Path, written: str, answer: str | None
) -> None:
    assert load(tmp_path, f"a:\n  answer: {written}\n").entry_for(unit("a")).answer == answer


def test_json_keeps_digits_and_characters(tmp_path: Path) -> None:
    text = '\t{"a": {"answer": 1.10}, "b": {"answer": "\\ud83d\\ude00"}}'

    recording = load(tmp_path, text, "a.json")

    assert recording.entry_for(unit("a")).answer == "1.10"
    assert recording.entry_for(unit("b")).answer == "\N{GRINNING FACE}"


def test_a_task_id_is_text(tmp_path: Path) -> None:
    assert set(load(tmp_path, "12: {}\n2024-01-01: {}\nno: {}\n").tasks) == {
        "12",
        "2024-01-01",
        "no",
    }


def test_one_statement_may_stand_alone(tmp_path: Path) -> None:
    assert load(tmp_path, "a: {sql: select 1}").entry_for(unit("a")).sql == ("select 1",)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        pytest.param("- a", ["must be a map from task id to an entry"], id="a-list"),
        pytest.param("", ["must be a map from task id to an entry"], id="nothing"),
        pytest.param("a: 42", ["a: must be a map"], id="a-lone-answer"),
        pytest.param(
            "a: {anwser: x}", ["a: unknown key 'anwser' (did you mean 'answer'?)"], id="a-slip"
        ),
        pytest.param(
            "a: {trails: []}", ["unknown key 'trails' (did you mean 'trials'?)"], id="another-slip"
        ),
        pytest.param("a: {answer: [x]}", ["a.answer: must be text"], id="an-answer-in-a-list"),
        pytest.param("a: {sql: {x: y}}", ["a.sql: must be a list of SQL texts"], id="odd-sql"),
        pytest.param("a: {sql: [~]}", ["a.sql: must be a list of SQL texts"], id="null-sql"),
        pytest.param("a: {exit: 256}", ["a.exit: must be an integer from 0"], id="exit-too-high"),
        pytest.param("a: {exit: -1}", ["a.exit: must be"], id="exit-too-low"),
        pytest.param("a: {exit: 1.0}", ["a.exit: must be"], id="exit-no-integer"),
        pytest.param("a: {sleep: -1}", ["a.sleep: must be a number"], id="sleep-negative"),
        pytest.param("a: {sleep: inf}", ["a.sleep: must be a number"], id="sleep-for-ever"),
        pytest.param("a: {sleep: soon}", ["a.sleep: must be a number"], id="sleep-a-word"),
        pytest.param("a: {files: [x]}", ["a.files: must be a map"], id="files-in-a-list"),
        pytest.param("a: {files: {/x: y}}", ["'/x' must stay inside"], id="an-absolute-file"),
        pytest.param("a: {files: {../x: y}}", ["'../x' must stay inside"], id="a-file-above"),
        pytest.param("a: {files: {b/../../x: y}}", ["must stay inside"], id="a-file-around"),
        pytest.param("a: {files: {.: y}}", ["'.' must stay inside"], id="the-folder-itself"),
        pytest.param("a: {files: {x: [y]}}", ["a.files.x: must be text"], id="a-file-of-a-list"),
        pytest.param("a: {variants: [x]}", ["a.variants: must be a map"], id="odd-variants"),
        pytest.param("a: {trials: {x: y}}", ["a.trials: must be a list"], id="odd-trials"),
        pytest.param(
            "a: {variants: {x: {}}, trials: [{}]}", ["has both variants and trials"], id="both-arms"
        ),
        pytest.param(
            "a: {exit: x}\nb: {variants: {v: {exit: y}}}\nc: {trials: [{}, {exit: z}]}",
            ["a.exit: must be", "b.variants.v.exit: must be", "c.trials[1].exit: must be"],
            id="all-at-once-with-their-places",
        ),
    ],
)
def test_mistakes_are_refused_all_at_once(tmp_path: Path, text: str, messages: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, text)

    assert str(caught.value).startswith(str(tmp_path / "answers.yaml"))
    for message in messages:
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("a.yaml", "a: {}\nb: {}\na: {}", "a.yaml:3: is no valid YAML", id="twice"),
        pytest.param("a.yaml", "a: {x: 1, x: 2}", "duplicate key 'x'", id="twice-inside"),
        pytest.param("a.yaml", "a: [", "is no valid YAML", id="broken"),
        pytest.param("a.yaml", "a: \x07", "is no valid YAML", id="a-control-character"),
        pytest.param("a.yaml", "? [x]\n: y", "a key must be text", id="a-list-as-key"),
        pytest.param("a.yaml", "a: &x {variants: *x}", "is no valid YAML", id="within-itself"),
        pytest.param("a.yaml", "a: !!python/name:os.system", "is no valid YAML", id="a-program"),
        pytest.param("a.yaml", "[" * 2000, "is nested too deeply", id="too-deep"),
        pytest.param("a.json", '{"a": {}, "a": {}}', "duplicate key 'a'", id="json-twice"),
        pytest.param("a.json", '{"a":\n{]', "a.json:2: is no valid JSON", id="json-broken"),
        pytest.param("a.json", '{"a": NaN}', "'NaN' is no JSON", id="json-nan"),
        pytest.param("a.json", "[" * 100_000, "is nested too deeply", id="json-too-deep"),
    ],
)
def test_a_broken_file_is_told_with_its_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, text, name)

    assert message in str(caught.value)


def test_json_has_true_values_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must be text"):
        load(tmp_path, '{"a": {"answer": true}}', "a.json")


def test_a_file_that_cant_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: {answer: \xe9}")

    with pytest.raises(UserError, match="no such file"):
        load_recording(tmp_path / "missing.yaml")
    with pytest.raises(UserError, match="is not UTF-8"):
        load_recording(tmp_path / "latin.yaml")


ARMS = """
plain: {answer: own}
arms: {answer: own, variants: {sonnet: {answer: sonnet}}}
only: {variants: {sonnet: {answer: sonnet}}}
trials: {trials: [{answer: first}, {answer: second}]}
both: {answer: own, trials: [{answer: first}]}
"""


@pytest.mark.parametrize(
    ("task", "variant", "trial", "answer"),
    [
        pytest.param("plain", "sonnet", 3, "own", id="an-entry-for-all"),
        pytest.param("arms", "sonnet", 1, "sonnet", id="the-variants-own"),
        pytest.param("arms", "haiku", 1, "own", id="another-variants"),
        pytest.param("trials", "default", 2, "second", id="the-second-trial"),
        pytest.param("both", "default", 1, "first", id="a-trial-before-the-rest"),
        pytest.param("both", "default", 2, "own", id="the-rest"),
    ],
)
def test_a_unit_gets_its_own_entry(
    tmp_path: Path, task: str, variant: str, trial: int, answer: str
) -> None:
    assert load(tmp_path, ARMS).entry_for(unit(task, variant, trial)).answer == answer


def test_what_was_never_recorded_is_refused_before_the_start(tmp_path: Path) -> None:
    recording = load(tmp_path, ARMS)
    units = [unit("plain"), unit("new"), unit("only", "haiku"), unit("trials", trial=3)]

    with pytest.raises(UserError) as caught:
        recording.refuse_missing(units)

    assert "no entry for 'new', 'only' variant 'haiku', 'trials' trial 3" in str(caught.value)
    recording.refuse_missing([unit("plain"), unit("only", "sonnet")])
