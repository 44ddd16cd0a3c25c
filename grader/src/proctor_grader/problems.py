"""Faults of an eval set: values that are collected, never raised, so that all are told at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(StrEnum):
    """Whether a problem refuses the set or only deserves a look."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a set, at the place where its author can mend it.

    Attributes:
        where: dotted path or file as the format's spec defines it; `.` for the whole set.
        message: what is wrong, in the words the format's spec fixes.
    """

    severity: Severity
    where: str
    message: str

    def to_json(self) -> dict[str, str]:
        """Return `{where, message}`; the severity is told by the list that holds it."""
        return {"where": self.where, "message": self.message}


@dataclass(slots=True)
class ProblemLog:
    """Collects problems in the order in which they are found."""

    problems: list[Problem] = field(default_factory=list)

    def error(self, where: str, message: str) -> None:
        """Add a problem that refuses the set."""
        self.problems.append(Problem(Severity.ERROR, where, message))

    def warning(self, where: str, message: str) -> None:
        """Add a problem that only `--strict` makes an error."""
        self.problems.append(Problem(Severity.WARNING, where, message))

    def of(self, severity: Severity) -> tuple[Problem, ...]:
        """Return the problems of one severity, oldest first."""
        return tuple(problem for problem in self.problems if problem.severity is severity)

    def promote_warnings(self) -> None:
        """Make every warning an error, as `--strict` asks."""
        self.problems = [Problem(Severity.ERROR, p.where, p.message) for p in self.problems]


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the nearest known word, else an empty text.

    Source: the formats' specs, `difflib.get_close_matches` with cutoff 0.6.
    """
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{near[0]}'?)" if near else ""


def listed(names: Iterable[str], limit: int = 5) -> str:
    """Join names for a message: `limit` at most, then `and 7 more`."""
    every = list(names)
    text = ", ".join(every[:limit])
    return text if len(every) <= limit else f"{text} and {len(every) - limit} more"
