"""Places in a document, and how a problem at one is worded: where, label, suggestion."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor_grader.formats.repo import FaultKind
from proctor_grader.identifiers import is_plain_name
from proctor_grader.problems import Severity, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proctor_grader.formats.repo import FileFault
    from proctor_grader.problems import ProblemLog

MAX_SUGGESTIONS = 1000
"""Different unknown keys that get a suggestion; looking for one takes 0.1 ms."""


@dataclass(slots=True)
class Suggestions:
    """Remembers what was suggested, since a set repeats the same slip in many tasks."""

    _known: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def nearest(self, word: str, known: tuple[str, ...]) -> str:
        """Return ` (did you mean 'x'?)`, or an empty text."""
        found = self._known.get((word, known))
        if found is None:
            found = suggestion(word, known) if len(self._known) < MAX_SUGGESTIONS else ""
            self._known[word, known] = found
        return found


@dataclass(frozen=True, slots=True)
class Place:
    """A value in the document; problems are reported at it or at what it holds.

    Attributes:
        where: dotted path, empty for the document itself.
        label: `task <id>: ` inside a task, else empty.
    """

    problems: ProblemLog
    suggestions: Suggestions
    where: str = ""
    label: str = ""

    def inside(self, suffix: str) -> Place:
        """Return a place within this one, with the same label."""
        return Place(self.problems, self.suggestions, self.where + suffix, self.label)

    def mark(self) -> int:
        """Return how many problems there are so far, for `is_sound_since`."""
        return len(self.problems.problems)

    def is_sound_since(self, mark: int) -> bool:
        """Whether no error was reported since the mark was taken, anywhere."""
        return all(
            problem.severity is not Severity.ERROR for problem in self.problems.problems[mark:]
        )

    def error(self, suffix: str, message: str) -> None:
        """Report an error at `suffix` (`.key`, `[0]` or both), with the label."""
        self.problems.error((self.where + suffix).removeprefix("."), self.label + message)

    def warning(self, suffix: str, message: str) -> None:
        """Report a warning at `suffix`, with the label."""
        self.problems.warning((self.where + suffix).removeprefix("."), self.label + message)

    def plain_error(self, suffix: str, message: str) -> None:
        """Report an error about an id or a path: those carry no label."""
        self.problems.error((self.where + suffix).removeprefix("."), message)

    def unknown_keys(self, keys: Iterable[str], known: tuple[str, ...]) -> None:
        """Warn of every key that isn't known here, with the nearest one that is.

        Source: eval-json format, section 4.
        """
        for key in keys:
            if key not in known:
                nearest = self.suggestions.nearest(key, known)
                self.warning(subscript(key), f"unknown key '{key}'{nearest}")

    def file_fault(self, suffix: str, fault: FileFault, *, subject: str, missing: str) -> None:
        """Report why a file can't be had.

        Args:
            suffix: where the path stands.
            fault: of the path.
            subject: what the file is, for faults of its content.
            missing: what to say before the path when there is no such file.
        """
        if fault.refusal:
            self.plain_error(suffix, fault.refusal)
        else:
            self.error(suffix, fault_message(fault, subject=subject, missing=missing))


def fault_message(fault: FileFault, *, subject: str, missing: str) -> str:
    """Word a fault that is no refusal of the path itself."""
    if fault.kind is FaultKind.NOT_UTF8:
        return f"{subject} is not valid UTF-8: {fault.path}"
    if fault.kind is FaultKind.TOO_LARGE:
        return f"{subject} is too large: {fault.path} ({fault.detail})"
    return f"{missing}: {fault.path}" + (f" ({fault.detail})" if fault.detail else "")


def subscript(key: str) -> str:
    """Return `.key`, or `["a b"]` for a key that is no plain name (U9)."""
    return f".{key}" if is_plain_name(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
