"""What an attempt left behind, as grading and the planner see it. Immutable once it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.process import ProcessEnd


@dataclass(frozen=True, slots=True)
class Evidence:
    """An agent's evidence.

    Attributes:
        answer: the final answer as it is stored; None where the agent left none. An empty text is
            an answer.
        end: how its process ended, by the harness's word.
        answer_source: file that it was taken from: `answer.txt`, `stdout.log` or
            `transcript.jsonl`; empty without an answer.
        usage: tokens and dollars as far as the agent told.
        notes: what was cut or left out and why, for people.
        files: object key -> sha256 in hex, of everything that is stored but the marker.
    """

    answer: str | None
    end: ProcessEnd
    answer_source: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
