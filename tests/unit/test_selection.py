"""The language of `--select` and `--exclude`."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_grader import Outcome, SelectionError, load_set, select_tasks
from tests.unit.formats.setfolder import read_cases, write_set

TASKS: list[dict[str, Any]] = [
    {"id": "a", "tags": ["x", "y z"], "category": "c 1", "kind": "build", "class": "write"},
    {"id": "s/1", "suite": "s", "tags": ["x"]},
    {"id": "s/2", "suite": "s"},
    {"id": "s", "kind": "audit"},
    {"id": "T1:Fan/Out"},
    {"id": "q,r"},
]
RUNS = [
    {"name": "one", "outcomes": {"a": ["failed"], "s/1": ["error", "passed"]}},
    {"name": "t@2", "outcomes": {"s/2": [Outcome.FAILED], "gone": ["cancelled"]}},
]
ALL = [task["id"] for task in TASKS]


def chosen(*select: str, exclude: tuple[str, ...] = (), **options: Any) -> list[str]:
    return select_tasks(TASKS, select, exclude, runs=RUNS, **options)


def messages(*select: str, exclude: tuple[str, ...] = (), **options: Any) -> tuple[str, ...]:
    with pytest.raises(SelectionError) as caught:
        select_tasks(TASKS, select, exclude, **{"runs": RUNS} | options)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).splitlines() == list(caught.value.messages)
    return caught.value.messages


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["id"]) for case in read_cases("select.json")]
)
def test_case(case: dict[str, Any]) -> None:
    def run() -> list[str]:
        return select_tasks(
            case["tasks"],
            case["select"],
            case["exclude"],
            drawn=case.get("drawn"),
            runs=case.get("runs", ()),
        )

    expected = case["expect"]
    if "ids" in expected:
        assert run() == expected["ids"]
    else:
        with pytest.raises(SelectionError) as caught:
            run()
        assert [text for text in expected["error_has"] if text not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("select", "ids"),
    [
        pytest.param(["s"], ["s"], id="a-whole-argument-that-is-an-id-is-no-suite"),
        pytest.param(["s a"], ["a", "s/1", "s/2", "s"], id="in-an-expression-it-is-both"),
        pytest.param(["id:s a"], ["a", "s"], id="id-is-never-a-suite"),
        pytest.param(["suite:s"], ["s/1", "s/2"], id="suite-is-never-an-id"),
        pytest.param(["suite:s,tag:x"], ["s/1"], id="all-parts-of-a-group"),
        pytest.param(["a,s/1 s"], ["s/1", "s/2", "s"], id="a-group-may-be-empty-beside-others"),
        pytest.param(['tag:"y z"'], ["a"], id="quoted-value-with-a-blank"),
        pytest.param(['category:"c 1",class:write'], ["a"], id="quoted-value-in-a-group"),
        pytest.param(['"q,r" a'], ["a", "q,r"], id="quoted-id-with-a-comma"),
        pytest.param(["q,r"], ["q,r"], id="whole-argument-with-a-comma"),
        pytest.param(["T1:Fan/Out a"], ["a", "T1:Fan/Out"], id="prefix-that-is-no-method"),
        pytest.param(['id:"T1:Fan/Out"'], ["T1:Fan/Out"], id="colon-in-quotes"),
        pytest.param(["id:T1:Fan/Out"], ["T1:Fan/Out"], id="only-the-first-colon-splits"),
        pytest.param(["\u2003a\u00a0s/1\n"], ["a", "s/1"], id="any-white-space"),
        pytest.param(["kind:query"], ["s/1", "s/2", "T1:Fan/Out", "q,r"], id="default-kind"),
        pytest.param(["a", "a a"], ["a"], id="each-once"),
        pytest.param(["outcome:failed"], ["s/2"], id="outcome-in-the-last-run"),
        pytest.param(["outcome:passed@one"], ["s/1"], id="one-unit-of-several-is-enough"),
        pytest.param(["outcome:failed@t@2"], ["s/2"], id="only-the-first-at-splits"),
        pytest.param(['outcome:"failed@one"'], ["a"], id="quoted-outcome"),
        pytest.param([], ALL, id="nothing-is-everything"),
    ],
)
def test_select(select: list[str], ids: list[str]) -> None:
    assert chosen(*select) == ids


def test_exclude_comes_after_select_and_speaks_the_same_language() -> None:
    assert chosen("s a", exclude=("suite:s", "T1:Fan/Out")) == ["a", "s"]
    assert chosen(exclude=("outcome:failed@one",)) == ALL[1:]


def test_drawn_rows_remain_in_the_order_of_the_set() -> None:
    assert chosen("s a", drawn=["s/2", "a", "T1:Fan/Out", "gone"]) == ["a", "s/2"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("", "select '': the selection is empty"),
        (" \t", "select ' \t': the selection is empty"),
        ("b", "select 'b': matches nothing"),
        ("tag:xx", "select 'tag:xx': matches nothing (did you mean 'x'?)"),
        ("tag:s", "select 'tag:s': matches nothing"),
        ("id:s/3", "select 'id:s/3': matches nothing (did you mean 's/2'?)"),
        ("suite:ss", "select 'suite:ss': matches nothing (did you mean 's'?)"),
        ("class:Write", "select 'class:Write': matches nothing (did you mean 'write'?)"),
        ('"tag:x"', "select '\"tag:x\"': matches nothing"),
        ("tag:", "select 'tag:': the value is empty"),
        ("outcome:", "select 'outcome:': the outcome is empty"),
        ("outcome:@one", "select 'outcome:@one': the outcome is empty"),
        ("outcome:failed@", "select 'outcome:failed@': the name of the run after @ is empty"),
        ("outcome:failed@4", "select 'outcome:failed@4': no such run '4'"),
        (
            "outcome:failed@won",
            "select 'outcome:failed@won': no such run 'won' (did you mean 'one'?)",
        ),
        ("outcome:error", "select 'outcome:error': matches nothing"),
        ("outcome:cancelled", "select 'outcome:cancelled': matches nothing"),
        (
            "outcome:Failed",
            "select 'outcome:Failed': unknown outcome 'Failed' (one of passed, failed, ungraded,"
            " error, cancelled) (did you mean 'failed'?)",
        ),
        ("tags:x", "select 'tags:x': unknown selection method 'tags' (did you mean 'tag'?)"),
        (":x", "select ':x': unknown selection method ''"),
        (
            "T1:FanOut",
            "select 'T1:FanOut': unknown selection method 'T1' (did you mean 'T1:Fan/Out'?)",
        ),
    ],
)
def test_one_bad_argument(argument: str, message: str) -> None:
    assert messages(argument) == (message,)


@pytest.mark.parametrize("argument", [",a", "a,", "a,,a", "a, s", "a ,s", ",", 'tag:""', '""'])
def test_something_is_empty(argument: str) -> None:
    found = messages(argument)
    assert all("empty" in message for message in found)


@pytest.mark.parametrize(
    "argument", ['"a', '"a b c', '"a b"c', 'tag:"x', 'a"', 'a"b"', '"a"b', '"a":"b"', 'a:b:"c"']
)
def test_quotes_are_unbalanced(argument: str) -> None:
    [message] = messages(argument)
    assert "unbalanced" in message


def test_every_bad_part_of_every_argument_is_told() -> None:
    found = messages("nope a,, tag:q", 'x"', exclude=("tags:x", "a"))
    assert found == (
        "select 'nope a,, tag:q': a part is empty (write no blank beside a comma)",
        "select 'nope a,, tag:q': a part is empty (write no blank beside a comma)",
        "select 'nope': matches nothing",
        "select 'tag:q': matches nothing",
        "select 'x\"': unbalanced quotes: one is inside a bare value",
        "exclude 'tags:x': unknown selection method 'tags' (did you mean 'tag'?)",
    )


def test_without_any_run_there_is_no_outcome() -> None:
    [message] = messages("outcome:failed", runs=())
    assert "no such run" in message


@pytest.mark.parametrize(
    ("select", "options"),
    [
        (["a,s/1"], {}),
        (["a"], {"exclude": ("a",)}),
        (["a"], {"drawn": ["s"]}),
        ([], {"drawn": []}),
    ],
)
def test_nothing_is_left(select: list[str], options: dict[str, Any]) -> None:
    [message] = messages(*select, **options)
    assert message.startswith("nothing left to run")


def test_a_set_without_tasks_leaves_nothing() -> None:
    with pytest.raises(SelectionError, match="nothing left to run"):
        select_tasks([], [], [])


def test_tasks_of_a_loaded_set(tmp_path: Any) -> None:
    manifest = (
        '{"tasks":[{"id":"a","prompt_text":"x","gt":"1","kind":"audit"},'
        '{"id":"T:b","class":"write","prompt_text":"x","gt":"1"}]}'
    )
    eval_set = load_set(write_set(tmp_path, {"eval.json": manifest})).eval_set
    assert eval_set is not None
    assert select_tasks(eval_set.tasks, ["class:write"], []) == ["T:b"]
    assert select_tasks(eval_set.tasks, ["kind:audit T:b"], []) == ["a", "T:b"]
    assert select_tasks(eval_set.tasks, [], ["T:b"]) == ["a"]


def test_suggestions_are_bounded() -> None:
    found = messages(*(f"s/1{letter}" for letter in map(chr, range(0x4E00, 0x4F00))))
    assert len(found) == 256
    assert sum("did you mean" in message for message in found) == 50
