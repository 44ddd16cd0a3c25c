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
from proctor_grader.model.process import ProcessEnd
from proctor_grader.model.result import StageRecord
from proctor_grader.pod.collect import collect
from proctor_grader.pod.evidence import stage_record
from proctor_grader.pod.prepare import AgentInput, input_folder, prepare
from proctor_grader.store.redact import Masker
from proctor_grader.warehouse.table import execute
from proctor_operator.plan.snapshot import AgentEnd, AgentFacts
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
    def environment(self) -> dict[str, str]:
        """What is added to a clean environment, PATH included."""
        if self.spec.kind is AgentKind.REPLAY:
            return python_environment() | dict(self.env)
        if not self.paths:
            return dict(self.env)
        folders = [path / "bin" if (path / "bin").is_dir() else path for path in self.paths]
        path = ":".join([*map(str, folders), os.environ.get("PATH", os.defpath)])
        return {"PATH": path} | dict(self.env)

    def files_for(self, unit: Unit) -> dict[str, bytes]:
        """What lies beside the prompt: a replay's own entry, and nobody else's."""
        if self.recording is None:
            return {}
        return {ENTRY_FILE: dump_bytes(self.recording.entry_for(unit).to_json())}

    def argv_in(self, folder: Path) -> tuple[str, ...]:
        """The agent's argument list for an attempt's folder."""
        if self.recording is None:
            return self.spec.argv
        entry = str(input_folder(folder) / ENTRY_FILE)
        return (sys.executable, "-P", "-m", "proctor_grader.agents.replay", entry)


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
    agent = ready.agent
    branch = work.branch
    dsn = "" if branch is None else branch.agent_dsn
    laid_out = prepare(
        work.folder,
        AgentInput(
            task_id=task.id,
            variant=work.unit.variant,
            trial=work.unit.trial,
            prompt=task.prompt,
            preamble=plan.options.preamble,
            instructions=ready.eval_set.claude_md_text if ready.eval_set.claude_md else None,
            project=prepared.project,
            dsn=dsn,
            environment=agent.environment,
            files=agent.files_for(work.unit),
        ),
    )
    if agent.is_process:
        command = laid_out.command(
            agent.argv_in(work.folder), timeout_seconds=plan.options.timeouts.agent
        )
        view = laid_out.view(
            readable=agent.readable,
            branch=None if branch is None else branch.sandbox_path,
            hidden=hidden_paths(ready),
            network=plan.options.network == "host",
        )
        end = ready.sandbox.run(command, view, stop)
    else:
        end = _play_canary(agent.spec.kind, task, laid_out.output, dsn)
    evidence = collect(
        laid_out,
        end,
        ready.store,
        work.keys,
        Masker([*agent.env.values(), *(() if branch is None else branch.secrets)]),
    )
    record = stage_record(end)
    facts = AgentFacts(end_of(end), evidence.answer is not None, record.message)
    return AgentRun(evidence, record, facts)


def end_of(end: ProcessEnd) -> AgentEnd:
    """Say in one word how an agent ended."""
    if end.cancelled:
        return AgentEnd.STOPPED
    if end.timed_out:
        return AgentEnd.TIMED_OUT
    if end.out_of_disk:
        return AgentEnd.DISK_EXCEEDED
    return AgentEnd.NORMAL if end.is_normal else AgentEnd.CRASHED


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
