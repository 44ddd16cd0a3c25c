"""The stages of a unit on this machine: each a short function over `pod`, agents and adapter."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

from proctor_grader.errors import ProctorError, StoreError
from proctor_grader.jsontext import dump_bytes
from proctor_grader.model.result import ANSWER_SHOWN, Cause, StageRecord, UnitResult
from proctor_grader.model.task import TaskClass
from proctor_grader.model.unit import Stage, branch_name
from proctor_grader.pod.grade import GradeJob, grade_unit, store_result
from proctor_grader.store.layout import RunKeys
from proctor_grader.warehouse.base import Mark
from proctor_operator.local.agentrun import run_agent
from proctor_operator.local.finish import RunFacts, finish_run
from proctor_operator.local.folders import WorkFolders
from proctor_operator.local.outcome import StageOutcome
from proctor_operator.local.prepare import Prepared, prepare_run
from proctor_operator.local.script import run_script
from proctor_operator.local.state import remove_tree
from proctor_operator.local.sweep import SweepResult, drop_branches
from proctor_operator.local.work import AttemptWork
from proctor_operator.plan.snapshot import RecordedResult, RunStage

if TYPE_CHECKING:
    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.task import Task
    from proctor_grader.model.unit import Unit
    from proctor_grader.warehouse.base import BranchAdapter, Warehouse
    from proctor_operator.local.ready import Ready
    from proctor_operator.local.runplan import RunPlan
    from proctor_operator.local.state import RunFolder
    from proctor_operator.local.watcher import Watcher
    from proctor_operator.plan.decision import RecordResult, RunVerdict
    from proctor_operator.sandbox.base import Stop

BRANCH_LIFETIME = timedelta(days=7)
RUN_CAPTURE_BYTES = 1_073_741_824
_TOLD = {
    RunStage.PREPARE: "preparing",
    RunStage.CLEANUP: "cleaning up",
    RunStage.FINISH: "writing results and report",
}


class LocalStages:
    """Carries stages out for one run; `record` is there once the run has finished.

    Thread-safe as the executor uses it: stages of one attempt come one after the other.
    """

    def __init__(self, ready: Ready, plan: RunPlan, folder: RunFolder, watcher: Watcher) -> None:
        self._ready = ready
        self._plan = plan
        self._folder = folder
        self._watcher = watcher
        self._keys = RunKeys.local(plan.id)
        self._tasks: dict[str, Task] = {task.id: task for task in ready.eval_set.tasks}
        self._prepared = Prepared()
        self._work_folders = WorkFolders(folder.work)
        self._captured_bytes = 0
        self._lock = Lock()
        self.record: RunRecord | None = None

    # -- attempts ------------------------------------------------------------------------------

    def open_attempt(self, unit: Unit, number: int) -> AttemptWork:
        """Return the attempt's own working state; no I/O."""
        return AttemptWork(
            unit=unit,
            number=number,
            keys=self._keys.attempt(unit.id, number),
            folder=self._work_folders.take(),
            branch_name=branch_name(self._plan.id, unit.task_id, unit.variant, unit.trial, number),
        )

    def run(self, stage: Stage, work: AttemptWork, stop: Stop) -> StageOutcome:
        """Carry out one stage of an attempt."""
        match stage:
            case Stage.BRANCH:
                return self._branch(work)
            case Stage.SETUP | Stage.TEARDOWN:
                return self._script(stage, work, stop)
            case Stage.AGENT:
                return self._agent(work, stop)
            case Stage.GRADE:
                return self._grade(work)
            case Stage.DROP:
                return self._drop(work)

    def record_verdict(self, work: AttemptWork, action: RecordResult) -> RecordedResult:
        """Store a verdict of the planner's, or return the one that is stored already."""
        evidence = work.evidence
        answer = None if evidence is None else evidence.answer
        result = UnitResult(
            unit=work.unit.id,
            task=work.unit.task_id,
            variant=work.unit.variant,
            trial=work.unit.trial,
            attempt=work.number,
            verdict=action.verdict,
            cause=action.cause,
            reason=action.reason,
            message=action.message,
            answer=None if answer is None else answer[:ANSWER_SHOWN],
            stages=dict(work.records),
            usage={} if evidence is None else evidence.usage,
            evidence={} if evidence is None else evidence.files,
        )
        stored = store_result(result, self._ready.store, self._keys)
        return RecordedResult(stored.verdict, stored.cause)

    def discard(self, work: AttemptWork) -> None:
        """Remove all that an attempt left in its working folders."""
        for folder in work.script_folders:
            remove_tree(folder)
        self._work_folders.give_back(work.folder)

    # -- the run -------------------------------------------------------------------------------

    def run_stage(self, stage: RunStage, verdict: RunVerdict | None, stop: Stop) -> StageOutcome:
        """Carry out what is done once for the run."""
        self._watcher.phase(_TOLD[stage])
        match stage:
            case RunStage.PREPARE:
                self._prepared = prepare_run(
                    self._ready, self._keys, self._folder.path, self._mark()
                )
                for notice in self._prepared.notices:
                    self._watcher.notice(notice)
                self._watcher.phase("running")
            case RunStage.CLEANUP:
                return self._clean_up()
            case RunStage.FINISH:
                if verdict is None:
                    raise ValueError("a run is finished with a verdict")
                facts = RunFacts(
                    tasks={task.id: task for task in self._ready.eval_set.tasks},
                    set_description=self._ready.eval_set.description,
                    fingerprint=self._prepared.fingerprint,
                    notices=(*self._ready.notices, *self._prepared.notices),
                    sandbox=self._ready.sandbox.name,
                    models=self._prepared.models,
                )
                self.record = finish_run(self._ready.store, self._keys, self._plan, facts, verdict)
        return StageOutcome()

    def _clean_up(self) -> StageOutcome:
        """Drop the shared branch and whatever else still carries the run's mark."""
        if self._ready.adapter is None:
            return StageOutcome()
        result = SweepResult()
        if drop_branches(self._ready.adapter, self._plan.id, result):
            return StageOutcome()
        return StageOutcome(Cause.INFRA, "BranchesRemain", "; ".join(result.problems))

    # -- stages --------------------------------------------------------------------------------

    def _branch(self, work: AttemptWork) -> StageOutcome:
        started = datetime.now(UTC)
        shared = self._prepared.shared
        if work.unit.task_class is TaskClass.WRITE:
            work.branch = self._adapter().create(work.branch_name, self._mark())
        elif shared is not None:
            work.branch = self._adapter().grant_read(shared, work.branch_name, self._mark())
        work.records[Stage.BRANCH.value] = _record(started)
        return StageOutcome()

    def _script(self, stage: Stage, work: AttemptWork, stop: Stop) -> StageOutcome:
        record, outcome = run_script(
            self._ready,
            self._plan,
            self._task(work),
            stage,
            work,
            eval_set=self._folder.eval_set,
            stop=stop,
        )
        work.records[stage.value] = record
        marker = dump_bytes(record.to_json())
        self._ready.store.put(work.keys.marker(stage), marker)
        return outcome

    def _agent(self, work: AttemptWork, stop: Stop) -> StageOutcome:
        ran = run_agent(self._ready, self._plan, self._prepared, self._task(work), work, stop=stop)
        work.evidence = ran.evidence
        work.records[Stage.AGENT.value] = ran.record
        if ran.evidence.end.start_error:
            return StageOutcome(Cause.INFRA, ran.record.reason, ran.record.message, retryable=False)
        return StageOutcome(agent=ran.facts)

    def _grade(self, work: AttemptWork) -> StageOutcome:
        if work.evidence is None:
            raise ValueError("grading comes after the agent")
        agent = work.records[Stage.AGENT.value]
        result = grade_unit(
            GradeJob(
                unit=work.unit,
                task=self._task(work),
                attempt=work.number,
                evidence=work.evidence,
                stages=dict(work.records),
                agent_reason=agent.reason,
                agent_message=agent.message,
                open_warehouse=None if work.branch is None else lambda: self._open(work),
                budget=self._budget,
            ),
            self._ready.store,
            self._keys,
        )
        return StageOutcome(result=RecordedResult(result.verdict, result.cause))

    def _drop(self, work: AttemptWork) -> StageOutcome:
        started = datetime.now(UTC)
        self._adapter().drop(work.branch_name)
        try:
            self._ready.store.put(
                work.keys.marker(Stage.DROP), dump_bytes(_record(started).to_json())
            )
        except StoreError:
            return StageOutcome()  # the branch is gone; a halted run only misses the note
        return StageOutcome()

    # -- small things --------------------------------------------------------------------------

    def _task(self, work: AttemptWork) -> Task:
        return self._tasks[work.unit.task_id]

    def _adapter(self) -> BranchAdapter:
        if self._ready.adapter is None:
            raise ProctorError("a branch was asked for without a warehouse")
        return self._ready.adapter

    def _open(self, work: AttemptWork) -> AbstractContextManager[Warehouse]:
        if work.branch is None:
            raise ProctorError("there is no branch to look at")
        return self._adapter().open_reader(work.branch)

    def _mark(self) -> Mark:
        expires = datetime.now(UTC) + BRANCH_LIFETIME
        return Mark(self._ready.state.installation, self._plan.id, expires)

    def _budget(self, spent: int) -> int:
        with self._lock:
            self._captured_bytes += spent
            return max(0, RUN_CAPTURE_BYTES - self._captured_bytes)


def _record(started: datetime) -> StageRecord:
    ended = datetime.now(UTC)
    return StageRecord(
        ok=True,
        started_at=started.isoformat(),
        ended_at=ended.isoformat(),
        seconds=round((ended - started).total_seconds(), 6),
    )
