"""What a folder tree may hold at most to be archived, and what was left out of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_FILES = 200_000
MAX_BYTES = 4 * 1024**3
MAX_DEPTH = 64
MAX_PATH_BYTES = 2048
"""Linux takes 4096 in one call; the rest is left to the folder that is unpacked to."""

MAX_NAME_BYTES = 255
MAX_SKIPPED = 100
"""Skipped entries that a report names; an agent can make millions."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out, or not taken as it was."""

    path: str
    reason: str


@dataclass(slots=True)
class SkippedLog:
    """What was left out so far: the first of it by name, all of it as a number."""

    first: list[Skipped] = field(default_factory=list)
    count: int = 0

    def add(self, path: str, reason: str) -> None:
        """Note one path; what can't be shown of it is replaced."""
        self.count += 1
        if len(self.first) < MAX_SKIPPED:
            shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            self.first.append(Skipped(shown, reason))


def max_visits(max_files: int) -> int:
    """How many entries are looked at: folders, links and special files count too."""
    return 4 * max_files + 1000
