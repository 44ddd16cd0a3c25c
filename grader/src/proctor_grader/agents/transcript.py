"""Reading what an agent told of itself: stream-json transcripts and `events.jsonl`. Pure.

Understood are the lines of Claude Code's print mode: `assistant` and `user` messages with tool
blocks, and `result` messages. Anything else between them is passed over. Memory is bounded by the
longest line that is kept and by the calls that have not returned.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_OPEN_CALLS = 1000
_TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent.

    Attributes:
        result: None while it never returned, which counts as an error.
    """

    tool: str
    input: Any
    result: Any = None
    is_error: bool = True

    def to_event(self) -> dict[str, Any]:
        """Return the call as a line of `events.jsonl` has it, without a time."""
        return {
            "tool": self.tool,
            "input": self.input,
            "result": self.result,
            "is_error": self.is_error,
        }


class _Reader:
    """Takes a stream of lines in piece by piece; `_take` gets the objects among the lines."""

    def __init__(self, needle: bytes) -> None:
        self.usage: dict[str, Any] = {}
        self._lines = _Lines(needle)

    def feed(self, chunk: bytes) -> None:
        """Take in some bytes; they may end anywhere in a line."""
        self._take_all(self._lines.feed(chunk))

    def finish(self) -> None:
        """Take in a last line that no line feed ended."""
        self._take_all(self._lines.finish())

    def _take_all(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            document = _object(line)
            if document is not None:
                self._take(document)

    def _take(self, document: Mapping[str, Any]) -> None:
        raise NotImplementedError


class ResultReader(_Reader):
    """Takes a stream-json transcript in; knows its final result afterwards.

    Attributes:
        result: text of the last `result` message; None if there is no such message, or if the last
            one reports an error or has no text.
        usage: tokens, dollars and turns as the last `result` message tells them.
    """

    def __init__(self) -> None:
        super().__init__(b'"result"')
        self.result: str | None = None

    def _take(self, document: Mapping[str, Any]) -> None:
        if document.get("type") != "result":
            return
        text = document.get("result")
        self.result = text if isinstance(text, str) and not document.get("is_error") else None
        self.usage = _usage(document) or self.usage


class EventUsageReader(_Reader):
    """Takes `events.jsonl` in; sums up its usage lines.

    Attributes:
        usage: tokens and dollars in all; empty where no line told any.
    """

    def __init__(self) -> None:
        super().__init__(b'"usage"')

    def _take(self, document: Mapping[str, Any]) -> None:
        told = document.get("usage")
        if not isinstance(told, dict):
            return
        for name, count in _counts(told).items():
            self.usage[name] = self.usage.get(name, 0) + count
        dollars = _dollars(told.get("usd"))
        if dollars is not None:
            self.usage["usd"] = str(Decimal(self.usage.get("usd", "0")) + dollars)


def read_calls(chunks: Iterable[bytes]) -> Iterator[ToolCall]:
    """Yield a transcript's tool calls in the order in which they were made.

    A call that has not returned when `MAX_OPEN_CALLS` later ones are open counts as one that never
    will, and so does one that is open at the end.
    """
    open_calls: OrderedDict[str, ToolCall] = OrderedDict()
    returned: set[str] = set()
    lines = _Lines(b'"tool_')
    for line in _all_lines(lines, chunks):
        for block in _blocks(_object(line)):
            _take_block(block, open_calls, returned)
            while open_calls:
                first = next(iter(open_calls))
                if first not in returned and len(open_calls) <= MAX_OPEN_CALLS:
                    break
                returned.discard(first)
                yield open_calls.pop(first)
    yield from open_calls.values()


def _take_block(
    block: Mapping[str, Any], open_calls: OrderedDict[str, ToolCall], returned: set[str]
) -> None:
    if block.get("type") == "tool_use":
        key = str(block.get("id"))
        if key not in open_calls:
            open_calls[key] = ToolCall(str(block.get("name")), block.get("input"))
    elif block.get("type") == "tool_result":
        key = str(block.get("tool_use_id"))
        call = open_calls.get(key)
        if call is not None and key not in returned:
            failed = block.get("is_error") is True
            open_calls[key] = replace(call, result=block.get("content"), is_error=failed)
            returned.add(key)


def _blocks(document: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if document is None or document.get("type") not in {"assistant", "user"}:
        return
    message = document.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def _usage(document: Mapping[str, Any]) -> dict[str, Any]:
    told = document.get("usage")
    usage: dict[str, Any] = dict(_counts(told)) if isinstance(told, dict) else {}
    dollars = _dollars(document.get("total_cost_usd"))
    if dollars is not None:
        usage["usd"] = str(dollars)
    turns = document.get("num_turns")
    if isinstance(turns, int) and not isinstance(turns, bool):
        usage["turns"] = turns
    return usage


def _counts(told: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: count
        for name in _TOKENS
        if isinstance(count := told.get(name), int) and not isinstance(count, bool) and count >= 0
    }


def _dollars(told: Any) -> Decimal | None:
    if not isinstance(told, Decimal | int | str) or isinstance(told, bool):
        return None
    try:
        dollars = Decimal(told)
    except ArithmeticError:
        return None
    # An agent's word: a number that is none, or absurd, is not worth keeping.
    return dollars if dollars.is_finite() and 0 <= dollars < 10**9 else None


@dataclass(slots=True)
class _Lines:
    """Splits a stream at line feeds; lets pass only lines that hold a text and are not too long."""

    needle: bytes
    rest: bytes = b""
    is_too_long: bool = False

    def feed(self, chunk: bytes) -> list[bytes]:
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return []
        whole = self.rest + chunk[:end]
        if self.is_too_long:
            whole = chunk[chunk.find(b"\n") + 1 : end]
        self.rest, self.is_too_long = b"", False
        self._keep(chunk[end:])
        # Most of what an agent prints is nothing of ours: one search for many lines.
        return self._wanted(whole.split(b"\n")) if self.needle in whole else []

    def finish(self) -> list[bytes]:
        rest, self.rest = self.rest, b""
        return self._wanted([rest])

    def _keep(self, part: bytes) -> None:
        if not self.is_too_long:
            self.rest += part
        if len(self.rest) > MAX_LINE_BYTES:
            self.rest, self.is_too_long = b"", True

    def _wanted(self, lines: list[bytes]) -> list[bytes]:
        return [line for line in lines if self.needle in line and len(line) <= MAX_LINE_BYTES]


def _all_lines(lines: _Lines, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from lines.feed(chunk)
    yield from lines.finish()


def _object(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        document = json.loads(line, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):  # hostile numbers and nesting too
        return None
    return document if isinstance(document, dict) else None
