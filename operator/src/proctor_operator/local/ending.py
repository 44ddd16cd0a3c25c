"""What a process's end means: for the planner in one word, for people in one sentence."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from proctor_grader.model.result import StageRecord
from proctor_operator.plan.snapshot import AgentEnd

if TYPE_CHECKING:
    from proctor_grader.model.process import ProcessEnd


def end_of(end: ProcessEnd) -> AgentEnd:
    """Say how an agent ended, as far as the plan depends on it."""
    if end.cancelled:
        return AgentEnd.STOPPED
    if end.timed_out:
        return AgentEnd.TIMED_OUT
    if end.out_of_disk:
        return AgentEnd.DISK_EXCEEDED
    return AgentEnd.NORMAL if end.is_normal else AgentEnd.CRASHED


def stage_record(end: ProcessEnd, who: str) -> StageRecord:
    """Put a process's end into a stage's record.

    Args:
        end: of the process.
        who: `Agent`, `Setup` or `Teardown`: what reasons begin with.
    """
    reason, message = _reason(end, who)
    return StageRecord(
        ok=not reason,
        reason=reason,
        message=message,
        exit_code=end.exit_code,
        signal=end.signal,
        timed_out=end.timed_out,
        started_at=end.started_at.isoformat(),
        ended_at=end.ended_at.isoformat(),
        seconds=round(end.seconds, 6),
    )


def _reason(end: ProcessEnd, who: str) -> tuple[str, str]:
    if end.start_error:
        return f"{who}NotStarted", f"it did not start: {end.start_error}"
    if end.cancelled:
        return f"{who}Stopped", "it was stopped before it ended"
    if end.timed_out:
        return f"{who}Timeout", f"it had not ended after {end.seconds:.0f} seconds"
    if end.out_of_disk:
        return f"{who}DiskExceeded", "it wrote more to its folders than it may"
    if end.signal is not None:
        return f"{who}Crashed", f"it was ended by {_signal_name(end.signal)}"
    if end.exit_code != 0:
        return f"{who}Crashed", f"it ended with exit code {end.exit_code}"
    return "", ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
