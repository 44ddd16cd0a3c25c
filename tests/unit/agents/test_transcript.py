"""Reading transcripts: the final result, usage and tool calls, whatever else stands between."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.agents.transcript import (
    MAX_LINE_BYTES,
    MAX_OPEN_CALLS,
    EventUsageReader,
    ResultReader,
    ToolCall,
    read_calls,
)


def lines(*documents: Any) -> bytes:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in documents]
    return "".join(f"{text}\n" for text in texts).encode()


def result(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "result", "result": text, **more}


def read(data: bytes, size: int = 1 << 20) -> ResultReader:
    reader = ResultReader()
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    reader.finish()
    return reader


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(lines(result("42")), "42", id="one-result"),
        pytest.param(lines(result("41"), result("42")), "42", id="the-last-of-two"),
        pytest.param(lines(result("")), "", id="an-empty-result"),
        pytest.param(lines("noise", "{", result("42"), "[1]", "more"), "42", id="noise-around"),
        pytest.param(lines(result("42"))[:-1], "42", id="no-line-feed-at-the-end"),
        pytest.param(lines(result("42")).replace(b"\n", b"\r\n"), "42", id="carriage-returns"),
        pytest.param(b"\xff\xfe" + lines("", result("42")), "42", id="binary-before"),
        pytest.param(lines(result("41"), result("no", is_error=True)), None, id="an-error-last"),
        pytest.param(
            lines(result("41"), {"type": "result", "subtype": "error_max_turns"}),
            None,
            id="an-end-without-a-text",
        ),
        pytest.param(lines(result(None)), None, id="no-text"),
        pytest.param(lines(result(["42"])), None, id="no-plain-text"),
        pytest.param(lines({"type": "assistant", "result": "42"}), None, id="another-message"),
        pytest.param(lines({"result": "42"}), None, id="no-type"),
        pytest.param(b"The result is 42\n", None, id="a-plain-log"),
        pytest.param(lines("[" * 100_000 + '"result"', result("42")), "42", id="hostile-nesting"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_last_result_message_is_the_final_result(data: bytes, text: str | None) -> None:
    assert read(data).result == text


@given(st.integers(1, 40))
def test_how_the_stream_is_cut_changes_nothing(size: int) -> None:
    data = lines("noise", result("é€\N{GRINNING FACE}"), "x" * 50, result("last", num_turns=2))

    assert read(data, size).result == "last"
    assert read(data, size).usage == {"turns": 2}


def test_a_line_that_is_too_long_is_passed_over_in_constant_memory() -> None:
    def chunks() -> Iterator[bytes]:
        yield lines(result("41")) + b'{"type": "result", "result": "'
        for _ in range(4 * MAX_LINE_BYTES // (1 << 20)):
            yield b"x" * (1 << 20)
        yield b'"}\n' + lines(result("42"))

    reader = ResultReader()
    tracemalloc.start()
    for chunk in chunks():
        reader.feed(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert reader.result == "42"
    assert peak < 4 * MAX_LINE_BYTES


@pytest.mark.parametrize(
    ("document", "usage"),
    [
        pytest.param(
            result(
                "x",
                usage={"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3},
                total_cost_usd=0.0125,
                num_turns=4,
            ),
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "cache_read_input_tokens": 3,
                "usd": "0.0125",
                "turns": 4,
            },
            id="all-of-it",
        ),
        pytest.param(
            result("x", usage={"input_tokens": True, "output_tokens": -1, "other": 5}),
            {},
            id="what-is-no-count",
        ),
        pytest.param(result("x", usage="many", total_cost_usd="NaN"), {}, id="what-is-no-number"),
        pytest.param(result("x", total_cost_usd=-1), {}, id="a-negative-price"),
        pytest.param(
            result("x", is_error=True, total_cost_usd=1), {"usd": "1"}, id="an-error-costs-too"
        ),
    ],
)
def test_usage_is_taken_from_the_result(document: Any, usage: dict[str, Any]) -> None:
    assert read(lines(document)).usage == usage


def test_usage_lines_of_events_are_summed_up() -> None:
    reader = EventUsageReader()
    reader.feed(
        lines(
            {"ts": "t", "usage": {"input_tokens": 10, "usd": "0.10"}},
            {"tool": "sql", "input": {"sql": "select 1"}},
            {"ts": "t", "usage": {"input_tokens": 5, "output_tokens": 2, "usd": 0.2}},
            {"usage": None},
            '{"usage": ',
        )
    )
    reader.finish()

    assert reader.usage == {"input_tokens": 15, "output_tokens": 2, "usd": "0.30"}


def use(key: str, tool: str = "sql", **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": key, "name": tool, "input": arguments}
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": "x"}, block]}}


def back(key: str, content: Any, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": key, "content": content, **more}
    return {"type": "user", "message": {"content": [block]}}


@pytest.mark.parametrize(
    ("documents", "calls"),
    [
        pytest.param(
            [use("1", q="a"), back("1", "rows")],
            [ToolCall("sql", {"q": "a"}, "rows", False)],
            id="a-call-with-its-result",
        ),
        pytest.param(
            [use("1", q="a"), use("2", q="b"), back("2", "b"), back("1", "a")],
            [ToolCall("sql", {"q": "a"}, "a", False), ToolCall("sql", {"q": "b"}, "b", False)],
            id="in-the-order-of-the-calls",
        ),
        pytest.param(
            [use("1"), back("1", "boom", is_error=True)],
            [ToolCall("sql", {}, "boom", True)],
            id="an-error",
        ),
        pytest.param(
            [use("1"), use("2"), back("2", "x")],
            [ToolCall("sql", {}, None, True), ToolCall("sql", {}, "x", False)],
            id="one-that-never-returned",
        ),
        pytest.param([back("9", "x")], [], id="a-result-of-nothing"),
        pytest.param(
            [use("1"), back("1", [{"type": "text", "text": "x"}])],
            [ToolCall("sql", {}, [{"type": "text", "text": "x"}], False)],
            id="a-result-of-blocks",
        ),
        pytest.param(
            ['{"type": "assistant", "message": "tool_use"}', {"type": "user", "message": {}}],
            [],
            id="messages-without-blocks",
        ),
    ],
)
def test_tool_calls_are_paired_with_their_results(
    documents: list[Any], calls: list[ToolCall]
) -> None:
    assert list(read_calls([lines(*documents)])) == calls


def test_a_call_becomes_an_event() -> None:
    (call,) = read_calls([lines(use("1", q="a"), back("1", "x"))])

    assert call.to_event() == {
        "tool": "sql",
        "input": {"q": "a"},
        "result": "x",
        "is_error": False,
    }


def test_calls_that_never_return_do_not_pile_up() -> None:
    count = MAX_OPEN_CALLS + 10
    calls = read_calls(lines(use(str(number))) for number in range(count))

    assert len([next(calls) for _ in range(10)]) == 10
    assert len(list(calls)) == MAX_OPEN_CALLS
