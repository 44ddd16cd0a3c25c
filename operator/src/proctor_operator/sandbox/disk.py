"""How much room a process's own folders take, measured without trusting what lies in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_BLOCK_BYTES = 512
MAX_ENTRIES = 500_000
MAX_DEPTH = 200


def exceeds(folders: Iterable[Path], max_bytes: int) -> bool:
    """Whether the folders take more room than allowed, or can't be measured within bounds.

    Counts blocks on disk, so a sparse file weighs what it really takes. More than `MAX_ENTRIES`
    names or `MAX_DEPTH` levels count as too much: they exhaust a disk just as well. Links are not
    followed. What is deleted but still open can't be seen.
    """
    room = max_bytes
    entries_left = MAX_ENTRIES
    stack = [(str(folder), 0) for folder in folders]
    while stack:
        folder, depth = stack.pop()
        if depth > MAX_DEPTH:
            return True
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    entries_left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        stack.append((entry.path, depth + 1))
                    else:
                        room -= entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                    if room < 0 or entries_left < 0:
                        return True
        except OSError:  # it vanished or changed its kind while we looked
            continue
    return False
