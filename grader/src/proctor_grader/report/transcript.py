"""Pure: what an agent recorded of itself, as entries a person can read.

Understands the stream-json of coding agents (system, assistant, user and result lines with text,
thinking, tool_use and tool_result blocks) and `events.jsonl`; any other line is shown as it is.
Everything in it is the agent's word, never evidence of what it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor_grader.jsontext import dump_json, load_json
from proctor_grader.report.display import cut, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENTRIES_SHOWN = 400
TEXT_SHOWN = 6_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of a conversation.

    Attributes:
        kind: `message`, `thinking`, `call`, `result`, `system` or `raw`.
        title: who or which tool.
        is_error: a tool's result that reports a failure.
    """

    kind: str
    title: str
    text: str
    is_error: bool = False
    at: str = ""


def parse_transcript(text: str) -> Iterator[Entry]:
    """Yield the steps of a stream-json transcript, each text masked and cut to `TEXT_SHOWN`."""
    for line in text.split("\n"):
        if line.strip():
            yield from _entries_of(line)


def looks_like_stream(text: str) -> bool:
    """Whether a text's first line is a JSON object with a `type`, as stream-json has it."""
    first = text.lstrip().partition("\n")[0]
    document = _object(first)
    return document is not None and isinstance(document.get("type"), str)


def _entries_of(line: str) -> Iterable[Entry]:
    document = _object(line)
    if document is None:
        return [Entry("raw", "", excerpt(line, TEXT_SHOWN))]
    kind = document.get("type")
    message = document.get("message")
    if kind in {"assistant", "user"} and isinstance(message, dict):
        return _blocks(str(kind), message.get("content"))
    if kind == "result":
        failed = document.get("is_error") is True
        return [Entry("message", "final result", _text(document.get("result")), failed)]
    if kind == "system":
        return [Entry("system", f"system {document.get('subtype', '')}".strip(), _text(document))]
    role = document.get("role")
    if isinstance(role, str) and "content" in document:
        return _blocks(role, document["content"])
    return [Entry("raw", str(kind) if isinstance(kind, str) else "", _text(document))]


def _blocks(role: str, content: Any) -> Iterator[Entry]:
    for block in content if isinstance(content, list) else [content]:
        if not isinstance(block, dict):
            yield Entry("message", role, _text(block))
            continue
        match block.get("type"):
            case "text":
                yield Entry("message", role, _text(block.get("text")))
            case "thinking":
                yield Entry("thinking", role, _text(block.get("thinking")))
            case "tool_use":
                yield Entry("call", _name(block.get("name")), _text(block.get("input")))
            case "tool_result":
                failed = block.get("is_error") is True
                yield Entry("result", "tool", _content_text(block.get("content")), failed)
            case _:
                yield Entry("raw", role, _text(block))


def _content_text(content: Any) -> str:
    """Text blocks are put together; anything else is shown as JSON."""
    if isinstance(content, list) and all(
        isinstance(block, dict) and isinstance(block.get("text"), str) for block in content
    ):
        return excerpt("\n".join(block["text"] for block in content), TEXT_SHOWN)
    return _text(content)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of `events.jsonl`: a tool call, or `usage` with no tool."""

    tool: str
    input: str
    result: str
    is_error: bool
    at: str = ""


def parse_events(text: str) -> Iterator[Event]:
    """Yield tool calls in order; lines that are none of ours become a call without a tool."""
    for line in text.split("\n"):
        if not line.strip():
            continue
        document = _object(line)
        if document is None:
            yield Event("", excerpt(line, TEXT_SHOWN), "", False)
        elif "tool" in document:
            yield Event(
                _name(document.get("tool")),
                _text(document.get("input")),
                _content_text(document.get("result")),
                document.get("is_error") is True,
                cut(str(document.get("ts", "")), 40),
            )
        else:
            yield Event("", _text(document), "", False, cut(str(document.get("ts", "")), 40))


def _object(line: str) -> dict[str, Any] | None:
    try:
        document = load_json(line)
    except (ValueError, ArithmeticError, RecursionError):  # hostile numbers and nesting too
        return None
    return document if isinstance(document, dict) else None


def _name(value: Any) -> str:
    return cut(value, 100) if isinstance(value, str) and value else "unnamed tool"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return excerpt(value, TEXT_SHOWN)
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):  # {"sql": "..."} reads best as the statement itself
            return excerpt(only, TEXT_SHOWN)
    try:
        return excerpt(dump_json(value, indent=2), TEXT_SHOWN)
    except RecursionError:  # from Python 3.12 on, reading goes deeper than writing
        return "…"
