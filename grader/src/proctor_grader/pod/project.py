"""Copying a project tree so that nothing outside of it comes along."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEFT_OUT = frozenset({".git"})


def copy_project(source: Path, target: Path, *, exclude: Path | None = None) -> tuple[str, ...]:
    """Copy a project's files, folders and inner links into a folder, which is made if need be.

    Left out are `.git`, the excluded folder, links that lead out of the tree or to something left
    out, and whatever is neither file, folder nor link.

    Args:
        source: the project.
        target: where to; files of the same name are replaced.
        exclude: a folder that must not be copied even where it lies in the project.

    Returns:
        Paths of the links that were dropped, relative to the project, sorted.
    """
    root = source.resolve()
    excluded = None if exclude is None else exclude.resolve()
    dropped: list[str] = []
    target.mkdir(parents=True, exist_ok=True)
    for folder, entry in _entries(root, excluded):
        relative = os.path.join(folder, entry.name)
        place = target / relative
        if entry.is_symlink():
            if _stays_inside(Path(entry.path), root, excluded):
                place.symlink_to(os.readlink(entry.path))
            else:
                dropped.append(relative)
        elif entry.is_dir():
            place.mkdir(exist_ok=True)
        elif entry.is_file():
            shutil.copyfile(entry.path, place)
            place.chmod(0o755 if entry.stat().st_mode & 0o100 else 0o644)
    return tuple(sorted(dropped))


def _entries(root: Path, excluded: Path | None) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry below a folder with its folder's relative path; folders before their content."""
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.name in _LEFT_OUT or (excluded and _is_within(Path(entry.path), excluded)):
                    continue
                yield folder, entry
                if entry.is_dir(follow_symlinks=False):
                    folders.append(os.path.join(folder, entry.name))


def _stays_inside(link: Path, root: Path, excluded: Path | None) -> bool:
    """Whether a link means the same in the copy: relative, and to something that is copied."""
    target = os.readlink(link)
    if os.path.isabs(target):
        return False
    try:
        resolved = (link.parent / target).resolve()
    except (OSError, RuntimeError):  # a circle of links
        return False
    if not resolved.is_relative_to(root) or _is_within(resolved, excluded):
        return False
    return _LEFT_OUT.isdisjoint(resolved.relative_to(root).parts)


def _is_within(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.is_relative_to(folder)
