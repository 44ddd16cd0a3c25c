"""Whether an agent changed its working directory, found without reading what is in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_Mark = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A working directory at one moment.

    Attributes:
        marks: relative path -> inode, kind and time of the last change. That time, unlike the one
            of the content, can't be set by the agent. A folder's does not count: making and
            removing an entry changes it.
    """

    marks: Mapping[str, _Mark] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Workspace:
        """Look at a directory that only we have written so far."""
        return cls(dict(_marks(root)))

    def differs_from(self, root: Path) -> bool:
        """Whether anything was made, changed or removed since; stops at the first difference."""
        seen = 0
        try:
            for path, mark in _marks(root):
                if self.marks.get(path) != mark:
                    return True
                seen += 1
        except OSError:
            return True
        return seen != len(self.marks)


def _marks(root: Path) -> Iterator[tuple[str, _Mark]]:
    if root.is_symlink():
        raise NotADirectoryError(str(root))
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                stat = entry.stat(follow_symlinks=False)
                is_folder = entry.is_dir(follow_symlinks=False)
                yield path, (stat.st_ino, stat.st_mode, 0 if is_folder else stat.st_ctime_ns)
                if is_folder:
                    folders.append(path)
