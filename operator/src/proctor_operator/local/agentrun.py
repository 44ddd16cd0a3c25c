"""Running one unit's agent on this machine, whatever kind it is, and taking in what it left."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader import contract
from proctor_grader.agents.base import AgentKind
from proctor_grader.agents.canary import oracle_answer, oracle_statements
from proctor_grader.errors import WarehouseError
from proctor_grader.jsontext import dump_bytes
from proctor_grader.model.process import Command, ProcessEnd, View
from proctor_grader.pod.collect import collect
from proctor_grader.pod.prepare import AgentInput, prepare_agent
from proctor_grader.store.redact import Masker
from proctor_grader.warehouse.table import execute
from proctor_operator.local.ending import end_of, stage_record
from proctor_operator.local.folders import ENTRY_FILE
from proctor_operator.plan.snapshot import AgentFacts

if TYPE_CHECKING:
    from proctor_grader.model.result import StageRecord
    from proctor_grader.model.task import Task
    from proctor_grader.pod.evidence import Evidence
    from proctor_grader.pod.prepare import Layout
    from proctor_operator.local.prepare import Prepared
    from proctor_operator.local.ready import Ready
    from proctor_operator.local.runplan import RunPlan
    from proctor_operator.local.work import AttemptWork
    from proctor_operator.sandbox.base import Stop


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What came of one agent."""

    evidence: Evidence
    record: StageRecord
    facts: AgentFacts


def run_agent(
    ready: Ready,
    plan: RunPlan,
    prepared: Prepared,
    task: Task,
    work: AttemptWork,
    *,
    stop: Stop,
) -> AgentRun:
    """Run a unit's agent to its end and store its evidence; the marker comes last.

    Raises:
        StoreError: the store is gone.
        WarehouseError: the oracle could not reach its branch.
    """
    agent, branch = ready.agent, work.branch
    layout = work.folder.lay_out()
    dsn = "" if branch is None else branch.agent_dsn
    given = AgentInput(
        task=task.id,
        prompt=task.prompt,
        preamble=plan.options.preamble,
        variant=work.unit.variant,
        trial=work.unit.trial,
        instructions=ready.eval_set.claude_md_text if ready.eval_set.claude_md else None,
        project=prepared.project,
        dsn=dsn,
        extra_env=agent.extra_env,
        paths=agent.search_paths,
    )
    environment = prepare_agent(layout, given)
    if agent.is_process:
        end = _run_process(ready, plan, work, layout, environment, stop=stop)
    else:
        end = _play_canary(agent.spec.kind, task, layout.output, dsn)
    record = stage_record(end, "Agent")
    evidence = collect(
        layout,
        end,
        record,
        store=ready.store,
        keys=work.keys,
        masker=Masker([*agent.env.values(), *(() if branch is None else branch.secrets)]),
    )
    facts = AgentFacts(end_of(end), evidence.answer is not None, record.message)
    return AgentRun(evidence, record, facts)


def _run_process(
    ready: Ready,
    plan: RunPlan,
    work: AttemptWork,
    layout: Layout,
    environment: dict[str, str],
    *,
    stop: Stop,
) -> ProcessEnd:
    agent, branch = ready.agent, work.branch
    argv = agent.spec.argv
    if agent.recording is not None:
        entry = layout.input / ENTRY_FILE
        entry.write_bytes(dump_bytes(agent.recording.entry_for(work.unit).to_json()))
        argv = (sys.executable, "-P", "-m", "proctor_grader.agents.replay", str(entry))
    command = Command(
        argv=argv,
        env=environment,
        cwd=layout.work,
        stdout=layout.logs / contract.STDOUT_LOG,
        stderr=layout.logs / contract.STDERR_LOG,
        timeout_seconds=plan.options.timeouts.agent,
        grace_seconds=contract.AGENT_GRACE_SECONDS,
        max_output_bytes=contract.MAX_LOG_BYTES,
    )
    view = View(
        writable=(layout.work, layout.output, layout.home),
        readable=(layout.input, *agent.readable),
        tmp=layout.tmp,
        branch=None if branch is None else branch.sandbox_path,
        hidden=hidden_paths(ready),
        network=plan.options.network == "host",
    )
    return ready.sandbox.run(command, view, stop)


def hidden_paths(ready: Ready) -> tuple[Path, ...]:
    """What no agent may see even below something it may read: the set, the store, our state."""
    store = Path(ready.store.url)
    return (ready.set_dir, *([store] if store.is_absolute() else []), ready.state.root)


def _play_canary(kind: AgentKind, task: Task, output: Path, dsn: str) -> ProcessEnd:
    """Play the oracle or nobody; with the grader, since the oracle reads golds."""
    started = datetime.now(UTC)
    answer = oracle_answer(task) if kind is AgentKind.ORACLE else ""
    if kind is AgentKind.ORACLE and dsn:
        _build_model(dsn, oracle_statements(task))
    (output / contract.ANSWER_FILE).write_text(answer, "utf-8")
    ended = datetime.now(UTC)
    return ProcessEnd(
        exit_code=0,
        signal=None,
        started_at=started,
        ended_at=ended,
        seconds=(ended - started).total_seconds(),
    )


def _build_model(dsn: str, statements: tuple[str, ...]) -> None:
    """Run the oracle's statements; only the last one, which makes the table, has to succeed."""
    error = ""
    for statement in statements:
        for result in execute(dsn, (statement,)):
            error = result.error
    if error:
        raise WarehouseError(f"the oracle could not build the task's model ({error})")
