"""Whatever is asked for, selecting gives tasks of the set or says what is wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.selection import SelectionError, select_tasks

words = st.text(st.sampled_from('ab:,"@ \t'), min_size=1, max_size=5)
ids = words.map(str.strip).filter(bool)
task_sets = st.lists(
    st.fixed_dictionaries(
        {"id": ids},
        optional={
            "tags": st.lists(words, max_size=2),
            "category": words,
            "suite": st.none() | words,
            "kind": st.sampled_from(["query", "build"]),
            "class": st.sampled_from(["read", "write"]),
        },
    ),
    max_size=6,
    unique_by=lambda task: task["id"],
)
arguments = st.lists(
    st.text(st.sampled_from('ab:,"@ \t'), max_size=12)
    | st.lists(st.sampled_from(["tag:", "id:", "outcome:failed", "class:read", "a", ",", " "])).map(
        "".join
    ),
    max_size=3,
)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@given(task_sets, arguments, arguments)
def test_a_selection_is_a_part_of_the_set_in_its_order(
    tasks: list[dict[str, Any]], select: list[str], exclude: list[str]
) -> None:
    everything = [task["id"] for task in tasks]
    runs = [{"name": "r", "outcomes": {"a": ["failed"]}}]
    chosen: list[str] = []
    messages: tuple[str, ...] = ()
    try:
        chosen = select_tasks(tasks, select, exclude, runs=runs)
    except SelectionError as error:
        messages = error.messages
    assert all(messages)
    assert bool(chosen) != bool(messages)
    assert chosen == [task_id for task_id in everything if task_id in set(chosen)]


@given(task_sets.filter(bool), st.data())
def test_every_value_can_be_asked_for_in_quotes(
    tasks: list[dict[str, Any]], data: st.DataObject
) -> None:
    task = data.draw(st.sampled_from(tasks))
    assert task["id"] in select_tasks(tasks, [f"id:{quoted(task['id'])}"], [])
    assert task["id"] in select_tasks(tasks, [task["id"]], [])
    assert task["id"] in select_tasks(tasks, [f"{quoted(task['id'])} {quoted(task['id'])}"], [])
    for tag in task.get("tags", []):
        found = select_tasks(tasks, [f"tag:{quoted(tag)}"], [])
        assert found == [other["id"] for other in tasks if tag in other.get("tags", [])]


@given(task_sets.filter(bool), st.data())
def test_excluding_what_is_selected_leaves_nothing_and_both_make_the_whole(
    tasks: list[dict[str, Any]], data: st.DataObject
) -> None:
    picked = data.draw(st.lists(st.sampled_from([task["id"] for task in tasks]), min_size=1))
    selected = select_tasks(tasks, picked, [])
    rest = [task["id"] for task in tasks if task["id"] not in selected]
    if rest:
        assert select_tasks(tasks, [], picked) == rest
