"""Reading what an agent printed: a stream-json transcript, line by line, whatever else is in it.

Understood are the lines of Claude Code's print mode: `assistant` and `user` messages with tool
blocks, and `result` lines. Anything else is passed over. Memory is bounded by the longest line
kept and by what is asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_LINE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent, in the order in which it was made.

    Attributes:
        result: None while it never returned, which counts as an error.
    """

    tool: str
    input: Any
    result: Any = None
    is_error: bool = True


@dataclass(slots=True)
class TranscriptReader:
    """Takes in a transcript; afterwards holds its final result and usage.

    Attributes:
        result: text of the last `result` line that is no error; None without one.
        usage: tokens and dollars as the last `result` line tells them.
    """

    result: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)

    def read(self, chunks: Iterable[bytes]) -> None:
        """Take in bytes; lines that are no JSON objects, or too long, are passed over."""
        for line in _lines(chunks):
            if b'"result"' in line:
                self._take(line)

    def _take(self, line: bytes) -> None:
        document = _object(line)
        if document is None or document.get("type") != "result":
            return
        text = document.get("result")
        if isinstance(text, str) and not document.get("is_error"):
            self.result = text
        self.usage = _usage(document)


def tool_calls(lines: Iterable[bytes]) -> list[ToolCall]:
    """Return the tool calls of a transcript's lines, each with the result that names its id."""
    calls: dict[str, ToolCall] = {}
    for line in lines:
        document = _object(line)
        if document is None or document.get("type") not in ("assistant", "user"):
            continue
        message = document.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                _take_block(calls, block)
    return list(calls.values())


def _take_block(calls: dict[str, ToolCall], block: Mapping[str, Any]) -> None:
    if block.get("type") == "tool_use":
        calls.setdefault(
            str(block.get("id", len(calls))), ToolCall(str(block.get("name")), block.get("input"))
        )
    elif block.get("type") == "tool_result":
        key = str(block.get("tool_use_id"))
        if key in calls:
            call = calls[key]
            calls[key] = ToolCall(
                call.tool, call.input, block.get("content"), bool(block.get("is_error"))
            )


def _usage(document: Mapping[str, Any]) -> dict[str, Any]:
    usage: dict[str, Any] = {}
    told = document.get("usage")
    if isinstance(told, dict):
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ):
            if isinstance(told.get(name), int) and not isinstance(told.get(name), bool):
                usage[name] = told[name]
    cost = document.get("total_cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        usage["usd"] = f"{cost:.6f}"
    turns = document.get("num_turns")
    if isinstance(turns, int) and not isinstance(turns, bool):
        usage["turns"] = turns
    return usage


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split at line feeds; a line over the bound is dropped whole."""
    kept = bytearray()
    is_too_long = False
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if not is_too_long and len(kept) + end - start <= MAX_LINE_BYTES:
                yield bytes(kept) + chunk[start:end]
            kept.clear()
            is_too_long = False
            start = end + 1
        if not is_too_long:
            kept += chunk[start:]
            if len(kept) > MAX_LINE_BYTES:
                kept.clear()
                is_too_long = True
    if kept and not is_too_long:
        yield bytes(kept)


def _object(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
