"""What an agent recorded of itself, as steps a person can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor_grader.report.transcript import (
    TEXT_SHOWN,
    Entry,
    Event,
    looks_like_stream,
    parse_events,
    parse_transcript,
)
from tests.make.example_run import EVENTS, TRANSCRIPT
from tests.make.report import json_lines


def entries(*documents: Any) -> list[Entry]:
    return list(parse_transcript(json_lines(documents)))


def test_a_conversation_becomes_steps() -> None:
    found = entries(*TRANSCRIPT)
    assert [(entry.kind, entry.title) for entry in found] == [
        ("system", "system init"),
        ("thinking", "assistant"),
        ("message", "assistant"),
        ("call", "sql"),
        ("result", "tool"),
        ("call", "sql"),
        ("result", "tool"),
        ("message", "final result"),
    ]
    assert found[3].text.startswith("select status, count(*)")
    assert found[4].text == "paid | 8,112 | 1284500.20\nopen | 311 | 40210.00"
    assert (found[6].text, found[6].is_error) == ('relation "refund" does not exist', True)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            {"role": "user", "content": "hi"}, Entry("message", "user", "hi"), id="plain-messages"
        ),
        pytest.param(
            {"type": "assistant", "message": {"content": "hi"}},
            Entry("message", "assistant", "hi"),
            id="content-that-is-text",
        ),
        pytest.param(
            {"type": "result", "is_error": True, "result": None},
            Entry("message", "final result", "", is_error=True),
            id="a-failed-end",
        ),
        pytest.param(
            {"role": "assistant", "content": [{"type": "tool_use", "input": {"a": 1, "b": 2}}]},
            Entry("call", "unnamed tool", '{\n  "a": 1,\n  "b": 2\n}'),
            id="a-call-without-a-name",
        ),
        pytest.param(
            {"role": "assistant", "content": [{"type": "image", "data": "x"}]},
            Entry("raw", "assistant", '{\n  "type": "image",\n  "data": "x"\n}'),
            id="an-unknown-block",
        ),
        pytest.param({"odd": ["x"]}, Entry("raw", "", '{\n  "odd": [\n    "x"\n  ]\n}'), id="odd"),
        pytest.param(
            {"role": "user", "content": [{"type": "tool_result", "content": {"rows": 1}}]},
            Entry("result", "tool", '{\n  "rows": 1\n}'),
            id="a-result-that-is-an-object",
        ),
    ],
)
def test_other_shapes_are_shown_too(document: Any, expected: Entry) -> None:
    assert entries(document) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("plain words", id="text"),
        pytest.param('{"cut": "of', id="cut-in-two"),
        pytest.param("[" * 100_000, id="nested-too-deep"),
        pytest.param('{"n": 1e999999999999999999999}', id="a-number-beyond-all-bounds"),
        pytest.param('"only a text"', id="no-object"),
        pytest.param("null", id="null"),
    ],
)
def test_a_line_that_is_no_step_is_shown_as_it_is(line: str) -> None:
    (entry,) = parse_transcript(line + "\n\n")
    assert entry.kind == "raw"
    assert entry.text.rstrip("…") == line[:TEXT_SHOWN].rstrip("…")[: len(entry.text.rstrip("…"))]


@pytest.mark.parametrize("depth", [100, 600, 950, 1_200, 8_000, 60_000])
def test_no_depth_of_nesting_does_harm(depth: int) -> None:
    (entry,) = parse_transcript('{"a": ' + "[" * depth + "]" * depth + "}")
    assert entry.text


def test_lines_end_at_line_feeds_only() -> None:
    line = json.dumps({"role": "user", "content": "a\u2028b"}, ensure_ascii=False)
    assert list(parse_transcript(line)) == [Entry("message", "user", "a⟨U+2028⟩b")]


def test_long_and_secret_texts_are_cut_and_masked() -> None:
    (entry,) = entries({"role": "user", "content": "postgresql://u:hunter2hunter2@db/x " * 2_000})
    assert len(entry.text) == TEXT_SHOWN
    assert "hunter2" not in entry.text


def test_events_become_calls() -> None:
    assert list(parse_events(json_lines(EVENTS) + "\nodd line\n")) == [
        Event("sql", "select 1", "1", is_error=False, at="2026-11-30T09:00:04Z"),
        Event(
            "sql",
            "select * from refund",
            'relation "refund" does not exist',
            is_error=True,
            at="2026-11-30T09:00:09Z",
        ),
        Event(
            "",
            '{\n  "ts": "2026-11-30T09:00:12Z",\n  "usage": {\n    "tokens": 5120\n  }\n}',
            "",
            is_error=False,
            at="2026-11-30T09:00:12Z",
        ),
        Event("", "odd line", "", is_error=False),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type": "system"}\n', True),
        ('\n {"type": "system"}', True),
        ('{"role": "user"}', False),
        ("starting agent", False),
        ("", False),
    ],
)
def test_a_stream_is_known_by_its_first_line(text: str, expected: bool) -> None:
    assert looks_like_stream(text) is expected
