"""The instruction file at a set's root that every format hands to the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.formats.place import fault_message
from proctor_grader.formats.repo import FaultKind, FileFault

if TYPE_CHECKING:
    from proctor_grader.formats.repo import Repo
    from proctor_grader.problems import ProblemLog

_NAMES = ("CLAUDE.md", "claude.md")


def read_instructions(repo: Repo, problems: ProblemLog) -> tuple[str | None, str]:
    """Return the instruction file's name and text; None and empty without one.

    A blank one and one that is no regular file do not count. A faulty one is reported at its name.

    Source: eval-json format, M1 and M2.
    """
    for name in _NAMES:
        if name not in repo.names:
            continue
        text = repo.read_text(name)
        if isinstance(text, FileFault):
            if text.kind is FaultKind.MISSING:
                continue
            message = fault_message(text, subject="CLAUDE.md", missing="CLAUDE.md cannot be read")
            problems.error(name, text.refusal or message)
            return None, ""
        if text and not text.isspace():
            return name, text
    return None, ""
