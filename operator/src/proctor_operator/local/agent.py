"""Running one unit's agent on this machine, whatever kind it is, and taking in what it left."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader import contract
from proctor_grader.agents.base import AgentKind, AgentSpec, parse_agent
from proctor_grader.agents.canary import oracle_answer, oracle_statements
from proctor_grader.agents.recording import load_recording
from proctor_grader.errors import UserError, WarehouseError
from proctor_grader.jsontext import dump_bytes
from proctor_grader.model.process import Command, ProcessEnd, View
from proctor_grader.model.result import StageRecord
from proctor_grader.pod.collect import collect
from proctor_grader.pod.prepare import AgentInput, Layout, prepare_agent
from proctor_grader.store.redact import Masker
from proctor_grader.warehouse.table import execute
from proctor_operator.local.ending import end_of, stage_record
from proctor_operator.plan.snapshot import AgentFacts
from proctor_operator.sandbox import python_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader.agents.recording import Recording
    from proctor_grader.model.task import Task
    from proctor_grader.model.unit import Unit
    from proctor_grader.pod.evidence import Evidence
    from proctor_operator.local.preflight import Ready
    from proctor_operator.local.prepare import Prepared
    from proctor_operator.local.runplan import RunOptions, RunPlan
    from proctor_operator.local.work import AttemptWork
    from proctor_operator.sandbox.base import Stop

ENTRY_FILE = "entry.json"
AGENT_NOT_STARTED = "AgentNotStarted"


@dataclass(frozen=True, slots=True)
class LocalAgent:
    """An agent that is ready to be run for every unit.

    Attributes:
        recording: of a replay; None for other kinds.
        env: variables handed over by name; their values are masked in evidence.
        paths: folders it may read, as `--agent-path` named them.
    """

    spec: AgentSpec
    recording: Recording | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()

    @property
    def is_process(self) -> bool:
        """Whether it runs in a process of its own; the canaries do not."""
        return self.spec.kind in (AgentKind.COMMAND, AgentKind.REPLAY)

    @property
    def readable(self) -> tuple[Path, ...]:
        """What it must be able to read beside its own folders."""
        python = python_view() if self.spec.kind is AgentKind.REPLAY else ()
        return (*python, *self.paths)

    @property
    def extra_env(self) -> dict[str, str]:
        """What is added to a clean environment."""
        own = python_environment() if self.spec.kind is AgentKind.REPLAY else {}
        return own | dict(self.env)

    @property
    def search_paths(self) -> tuple[Path, ...]:
        """Folders for its PATH: of each path its `bin` where it has one, else itself."""
        return tuple(path / "bin" if (path / "bin").is_dir() else path for path in self.paths)


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What came of one agent."""

    evidence: Evidence
    record: StageRecord
    facts: AgentFacts


def open_agent(options: RunOptions, units: Iterable[Unit]) -> LocalAgent:
    """Get an agent ready, and find out before the start what would fail for every unit.

    Raises:
        UserError: the agent is misnamed, a replay lacks entries, a variable or folder is missing.
    """
    spec = parse_agent(options.agent)
    recording = None
    if spec.kind is AgentKind.REPLAY:
        recording = load_recording(Path(spec.argument).expanduser())
        recording.refuse_missing(units)
    env = {}
    for name in options.agent_env:
        if name not in os.environ:
            raise UserError(
                f"variable '{name}' is not set", where="--agent-env", remedy=f"export {name}"
            )
        env[name] = os.environ[name]
    paths = tuple(Path(path) for path in options.agent_path)
    for path in paths:
        if not path.exists():
            raise UserError(
                f"'{path}' is not there", where="--agent-path", remedy="name an existing folder"
            )
    return LocalAgent(spec, recording, env, paths)


def run_agent(
    ready: Ready,
    plan: RunPlan,
    prepared: Prepared,
    task: Task,
    work: AttemptWork,
    stop: Stop,
) -> AgentRun:
    """Run a unit's agent to its end and store its evidence; the marker comes last.

    Raises:
        StoreError: the store is gone.
        WarehouseError: the oracle could not reach its branch.
    """
    agent, branch = ready.agent, work.branch
    layout = Layout(work.folder)
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


def python_environment() -> dict[str, str]:
    """What a process needs to run this Python with this package in it, and nothing else."""
    package = Path(contract.__file__).parent.parent
    return {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}


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
