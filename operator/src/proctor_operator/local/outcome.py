"""How a stage ended, as the executor reports it; the one place that reads exceptions."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader.errors import (
    BranchError,
    ProctorError,
    RunError,
    StoreError,
    StoreFull,
    TransientError,
    UserError,
)
from proctor_grader.model.result import Cause
from proctor_grader.model.unit import Stage

if TYPE_CHECKING:
    from proctor_operator.plan.snapshot import AgentFacts, RecordedResult

log = logging.getLogger(__name__)

INTERNAL_ERROR = "InternalError"
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """A stage's end; without a `reason` it did what it is for."""

    cause: Cause | None = None
    reason: str = ""
    message: str = ""
    retryable: bool = True
    agent: AgentFacts | None = None
    result: RecordedResult | None = None


def outcome_of_error(error: BaseException, stage: Stage | None) -> StageOutcome:
    """Say whose fault an exception is and whether trying again can help.

    Args:
        error: what a stage raised.
        stage: None for the run's own stages.
    """
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        error = StoreFull(
            "no space left on this machine's disk",
            where=str(error.filename or ""),
            remedy="free some space, then resume the run",
        )
    if isinstance(error, StoreError):
        return StageOutcome(Cause.INFRA, error.reason, str(error), retryable=False)
    if isinstance(error, BranchError | UserError | RunError):
        return StageOutcome(Cause.INFRA, error.reason, str(error), retryable=False)
    if isinstance(error, TransientError):
        return StageOutcome(Cause.INFRA, error.reason, str(error))
    if isinstance(error, ProctorError):
        return StageOutcome(Cause.INFRA, error.reason, str(error))
    log.error("stage failed with an unexpected error", exc_info=error)
    cause = Cause.GRADER if stage is Stage.GRADE else Cause.INFRA
    return StageOutcome(cause, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
