"""What a path in a set may look like; whether anything is there is `repo`'s to say. Pure."""

from __future__ import annotations

import re

from proctor_grader.identifiers import has_control_character

_DRIVE = re.compile("[A-Za-z]:")


def is_relative(path: str) -> bool:
    """Whether a path is neither blank nor absolute nor of another system.

    Source: eval-json format, P1.
    """
    return not (
        not path
        or path.isspace()
        or path.startswith("/")
        or "\\" in path
        or _DRIVE.match(path)
        or has_control_character(path)
    )


def escapes(path: str) -> bool:
    """Whether a `..` segment is anywhere in the path, even if the result would stay inside.

    Source: eval-json format, P2.
    """
    return ".." in path.split("/")


def segments(path: str) -> list[str]:
    """Return the names that lead to the file: without `.` and doubled slashes (P5).

    A path whose end names a folder (`a/`, `a/.`) ends in an empty segment, which no file has.
    """
    parts = path.split("/")
    names = [part for part in parts if part not in {"", "."}]
    if parts[-1] in {"", "."}:
        names.append("")
    return names
