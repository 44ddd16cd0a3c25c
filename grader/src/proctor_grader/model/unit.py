"""What is scheduled: variant x task x trial, and the names made from it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from proctor_grader.model.task import TaskClass, TaskId

UnitId = NewType("UnitId", str)
RunId = NewType("RunId", str)

DEFAULT_VARIANT = "default"
_RUN_HEX = re.compile(r"run-[0-9]{8}-[0-9]{6}-([0-9a-f]{6})")
_SLUG_LENGTH = 32


class Stage(StrEnum):
    """A step of a unit's life that is started, watched and ends."""

    BRANCH = "branch"
    SETUP = "setup"
    AGENT = "agent"
    GRADE = "grade"
    TEARDOWN = "teardown"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Unit:
    """One trial of one task under one variant.

    Attributes:
        id: slug plus digest, safe in an object key, a file name and a label.
        trial: counted from 1.
        has_setup: a setup script is declared; likewise `has_teardown`.
        grades_branch: the unit is judged by what stands on its branch, answer or not.
    """

    id: UnitId
    task_id: TaskId
    task_class: TaskClass
    variant: str = DEFAULT_VARIANT
    trial: int = 1
    has_setup: bool = False
    has_teardown: bool = False
    grades_branch: bool = False


def _digest6(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _slug(task_id: str) -> str:
    lowered = "".join(
        character.lower() if character.isascii() and character.isalnum() else "-"
        for character in task_id
    )
    return lowered[:_SLUG_LENGTH].strip("-") or "task"


def _identity(task_id: str, variant: str, trial: int) -> str:
    if variant == DEFAULT_VARIANT and trial == 1:
        return task_id
    return f"{task_id}\0{variant}\0{trial}"


def unit_id(task_id: TaskId, variant: str = DEFAULT_VARIANT, trial: int = 1) -> UnitId:
    """Name a unit so that the name is safe in an object key and in a label.

    Returns:
        At most 63 characters of [a-z0-9-]; inputs that differ give names that differ.

    Source: design.md, section 7; the digest is longer than a branch's since it stands alone.
    """
    identity = _identity(task_id, variant, trial)
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return UnitId(f"{_slug(task_id)}-{digest}")


def run6(run_id: str) -> str:
    """Return the six hex digits that stand for a run in its branches' names."""
    match = _RUN_HEX.fullmatch(run_id)
    return match.group(1) if match else _digest6(run_id)


def branch_name(
    run_id: str,
    task_id: str,
    variant: str = DEFAULT_VARIANT,
    trial: int = 1,
    attempt: int = 1,
) -> str:
    """Name the branch of one attempt: `eval-<run6>-<slug>-<digest6>[-<attempt>]`.

    Returns:
        At most 63 characters of [a-z0-9-].

    Source: eval-json format, section 8.
    """
    name = f"eval-{run6(run_id)}-{_slug(task_id)}-{_digest6(_identity(task_id, variant, trial))}"
    return name if attempt == 1 else f"{name}-{attempt}"
