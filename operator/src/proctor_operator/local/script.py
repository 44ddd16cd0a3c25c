"""Running a unit's setup or teardown script on this machine, sandboxed like an agent."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader import contract
from proctor_grader.model.process import Command, View
from proctor_grader.model.result import Cause, StageRecord
from proctor_grader.model.unit import Stage
from proctor_grader.pod.prepare import Layout, base_environment
from proctor_grader.pod.script import ScriptInput, script_command, script_environment
from proctor_grader.store.redact import Masker
from proctor_operator.local.agent import python_environment
from proctor_operator.local.agentrun import hidden_paths
from proctor_operator.local.ending import stage_record
from proctor_operator.local.outcome import StageOutcome
from proctor_operator.sandbox import python_view

if TYPE_CHECKING:
    from proctor_grader.model.process import ProcessEnd
    from proctor_grader.model.task import Task
    from proctor_operator.local.ready import Ready
    from proctor_operator.local.runplan import RunPlan
    from proctor_operator.local.work import AttemptWork
    from proctor_operator.sandbox.base import Stop


def run_script(
    ready: Ready,
    plan: RunPlan,
    task: Task,
    stage: Stage,
    work: AttemptWork,
    *,
    eval_set: Path,
    stop: Stop,
) -> tuple[StageRecord, StageOutcome]:
    """Run a script to its end and store its log, kept even on failure.

    Args:
        ready: the run's parts.
        plan: whose timeouts count where the set has none.
        task: that declares the script.
        stage: setup or teardown.
        work: the attempt, with its branch.
        eval_set: the run's copy of the set; the script gets a copy of its own.
        stop: ends it early.

    Raises:
        StoreError: the store is gone.
    """
    path = task.setup if stage is Stage.SETUP else task.teardown
    branch = work.branch
    if path is None or branch is None:
        raise ValueError("a script needs a declaration and a branch")
    layout = Layout(work.script_folder(stage))
    layout.make()
    set_copy, log = layout.root / "set", layout.logs / f"{stage.value}.log"
    shutil.copytree(eval_set, set_copy, symlinks=True)
    given = ScriptInput(path, task.id, stage, branch.agent_dsn, ready.eval_set.setup.env)
    command = Command(
        argv=script_command(given),
        env=script_environment(_base_environment(layout), given),
        cwd=set_copy,
        stdout=log,
        stderr=None,
        timeout_seconds=plan.options.timeouts.setup
        if stage is Stage.SETUP
        else plan.options.timeouts.teardown,
        grace_seconds=contract.AGENT_GRACE_SECONDS,
        max_output_bytes=contract.MAX_LOG_BYTES,
    )
    view = View(
        writable=(layout.home,),
        readable=(set_copy, *python_view(), *ready.agent.paths),
        tmp=layout.tmp,
        branch=branch.sandbox_path,
        hidden=hidden_paths(ready),
    )
    end = ready.sandbox.run(command, view, stop)
    if log.exists():
        masked = layout.root / "masked.log"
        Masker(branch.secrets).mask_file(log, masked)
        ready.store.put_file(work.keys.log(stage), masked)
    record = stage_record(end, stage.value.capitalize())
    return record, _outcome(end, record, path)


def _base_environment(layout: Layout) -> dict[str, str]:
    """A clean environment in which `python3` is the Python that runs Proctor, engines and all."""
    own = Path(sys.executable).parent
    environment = base_environment(layout, (own,)) | python_environment()
    # A script may import what lies beside it.
    del environment["PYTHONSAFEPATH"]
    return environment


def _outcome(end: ProcessEnd, record: StageRecord, path: str) -> StageOutcome:
    if record.ok:
        return StageOutcome()
    message = f"{path}: {record.message}"
    if end.start_error:
        return StageOutcome(Cause.INFRA, record.reason, message, retryable=False)
    cause = Cause.INFRA if end.cancelled else Cause.SET
    return StageOutcome(cause, record.reason, message)
