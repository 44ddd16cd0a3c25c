"""What a run was asked to be, frozen: flags fill it here, API models will convert into it."""

from __future__ import annotations

from dataclasses import dataclass, field

from proctor_grader import contract


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each stage may take by itself, in seconds.

    Attributes:
        run: for the whole run while it has living units; None for no bound.
    """

    branch: float = 900
    setup: float = contract.SCRIPT_TIMEOUT_SECONDS
    agent: float = contract.AGENT_TIMEOUT_SECONDS
    grade: float = contract.GRADE_TIMEOUT_SECONDS
    teardown: float = contract.SCRIPT_TIMEOUT_SECONDS
    drop: float = 300
    prepare: float = 1800
    finish: float = 1800
    run: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How often something is tried, and how long the planner waits in between and after.

    Attributes:
        attempts: tries at a unit after faults of the infrastructure.
        collect_attempts: attempts that may end in evidence that could not be stored.
        grade_tries: on the same evidence and branch; likewise `drop_tries`, `run_stage_tries`.
        backoff_seconds: before the second try, doubled for each further one.
        margin_seconds: beyond a stage's own time before the planner stops it.
        stop_grace_seconds: between asking a stage to stop and counting it as lost.
    """

    attempts: int = 3
    collect_attempts: int = 2
    grade_tries: int = 3
    drop_tries: int = 5
    run_stage_tries: int = 3
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 30.0
    margin_seconds: float = 300.0
    stop_grace_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What the planner has to know of a run.

    Attributes:
        parallelism: units alive at the same time, at least 1.
        has_warehouse: units get branches.
    """

    parallelism: int = 4
    has_warehouse: bool = False
    timeouts: Timeouts = field(default_factory=Timeouts)
    limits: Limits = field(default_factory=Limits)
