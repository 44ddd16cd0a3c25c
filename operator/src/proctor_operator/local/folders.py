"""Folders for attempts. What an attempt left as it found it serves the next one.

A file system may spend more on making and removing an attempt's folders than everything else
costs that is done around an agent which does next to nothing.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from proctor_grader import contract
from proctor_grader.pod.prepare import INPUT_FOLDER, Layout
from proctor_operator.local.state import remove_tree

if TYPE_CHECKING:
    from pathlib import Path

ENTRY_FILE = "entry.json"
"""What a replayed agent is to do; in its input."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_LOGS = (contract.STDOUT_LOG, contract.STDERR_LOG)
_OWN_INPUT = (contract.PROMPT_NAME, ENTRY_FILE)
_Mark = tuple[int, int, int, int, int]


@dataclass(slots=True)
class WorkFolder:
    """An attempt's own folder; a short name that tells nothing, since the agent can see it.

    Attributes:
        marks: of the folders in it, as they were when they were made; empty before that.
    """

    path: Path
    marks: dict[str, _Mark] = field(default_factory=dict)

    def lay_out(self) -> Layout:
        """Return the attempt's folders, made and empty."""
        layout = Layout(self.path, is_made=bool(self.marks))
        if not layout.is_made:
            layout.make()
            self.marks = {"": _mark(os.stat(layout.root))}
            for folder in layout.folders:
                self.marks[folder.name] = _mark(os.stat(folder))
        return layout


class WorkFolders:
    """The folders of a run's attempts; thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._free: list[WorkFolder] = []
        self._made = 0
        self._lock = Lock()

    def take(self) -> WorkFolder:
        """Return a folder that no other attempt has; no I/O."""
        with self._lock:
            if self._free:
                return self._free.pop()
            self._made += 1
            return WorkFolder(self._root / str(self._made))

    def give_back(self, folder: WorkFolder) -> None:
        """Take a folder back that nobody uses any more: cleaned, else removed.

        Raises:
            TransientError: something of it is left.
        """
        if folder.marks:
            with contextlib.suppress(OSError):
                if _is_clean_again(folder):
                    with self._lock:
                        self._free.append(folder)
                    return
        remove_tree(folder.path)


def _is_clean_again(folder: WorkFolder) -> bool:
    """Take out what we put into an attempt's folder, and whatever its agent changed in it.

    A folder whose inode was never changed holds no trace of an agent: the time of that change,
    unlike all other times, can't be set. The others are made anew.
    """
    root = os.open(folder.path, _FOLDER)
    try:
        for name in _OWN_LOGS:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=root)
        if _mark(os.fstat(root))[:-1] != folder.marks[""][:-1]:
            return False
        if {*os.listdir(root), ""} != folder.marks.keys():
            return False
        for name in folder.marks:
            if name and not _is_untouched(root, name, folder.marks[name]):
                remove_tree(folder.path / name)
                os.mkdir(name, dir_fd=root)
                found = os.stat(name, dir_fd=root, follow_symlinks=False)
                folder.marks[name] = _mark(found)
    finally:
        os.close(root)
    return True


def _is_untouched(root: int, name: str, mark: _Mark) -> bool:
    found = os.stat(name, dir_fd=root, follow_symlinks=False)
    if name == INPUT_FOLDER:  # we have written to it
        if _mark(found)[:-1] != mark[:-1]:
            return False
        for own in _OWN_INPUT:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{name}/{own}", dir_fd=root)
    elif _mark(found) != mark:
        return False
    handle = os.open(name, _FOLDER, dir_fd=root)
    try:
        return not os.listdir(handle)
    finally:
        os.close(handle)


def _mark(found: os.stat_result) -> _Mark:
    """Everything that a change of a folder shows in; the time of the change comes last."""
    return (found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_ctime_ns)
