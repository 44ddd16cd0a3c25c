"""Everything that can be found wrong before a run starts: set, selection, agent, warehouse, store.

Nothing here leaves a trace, but for the probe that the store takes away again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.agents.base import AgentKind
from proctor_grader.errors import RunError, UserError
from proctor_grader.model.process import Command, View
from proctor_grader.pod.prepare import Layout, base_environment
from proctor_grader.store.table import open_store
from proctor_grader.warehouse.table import open_adapter
from proctor_operator.local.agent import open_agent
from proctor_operator.local.choose import choose_tasks
from proctor_operator.local.history import finished_runs
from proctor_operator.local.ready import Ready
from proctor_operator.local.runplan import for_set, refuse_writes_without_warehouse, units_of
from proctor_operator.local.state import LocalState
from proctor_operator.local.sweep import adapter_options
from proctor_operator.sandbox import choose_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from proctor_grader.model.task import EvalSet, Task
    from proctor_grader.model.unit import Unit
    from proctor_grader.warehouse.base import BranchAdapter
    from proctor_operator.local.agent import LocalAgent
    from proctor_operator.local.request import RunRequest
    from proctor_operator.sandbox.base import Sandbox


@contextlib.contextmanager
def preflight(request: RunRequest, notice: Callable[[str], None]) -> Iterator[Ready]:
    """Look at everything a new run needs, and hold it open.

    Args:
        request: what is asked for.
        notice: told while the run is under way, such as of a store that can't be reached.

    Raises:
        UserError: something that was asked for is wrong or missing.
        RunError, TransientError: warehouse or store do not allow a run.
    """
    eval_set, directory = request.eval_set, request.directory
    if eval_set is None or directory is None:
        raise UserError("is missing", where="DIR", remedy="name the eval set to run")
    tasks = _choose(request, eval_set)
    units = units_of(tasks, trials=request.options.trials)
    if not request.warehouse_url:
        refuse_writes_without_warehouse(eval_set, units)
    set_dir = directory if directory.is_dir() else directory.parent
    with open_parts(request, eval_set, set_dir, units, notice=notice) as ready:
        yield ready


@contextlib.contextmanager
def open_parts(
    request: RunRequest,
    eval_set: EvalSet,
    set_dir: Path,
    units: tuple[Unit, ...],
    *,
    notice: Callable[[str], None],
) -> Iterator[Ready]:
    """Open store, state, agent, sandbox and warehouse for given units.

    Raises:
        UserError, RunError, TransientError: as `preflight`.
    """
    options = for_set(request.options, eval_set)
    agent = open_agent(options, units)
    store = open_store(
        request.store_url,
        retry_seconds=request.store_retry_seconds,
        on_outage=lambda error: notice(f"waiting for the store: {error}"),
    )
    store.check()
    state = LocalState.open()
    with contextlib.ExitStack() as stack:
        sandbox, notices = choose_sandbox(options.sandbox, network=options.network == "host")
        stack.callback(sandbox.close)
        _check_command(agent, sandbox)
        adapter: BranchAdapter | None = None
        if request.warehouse_url:
            adapter = open_adapter(request.warehouse_url, adapter_options(state, options.isolation))
            stack.callback(adapter.close)
            notices += _check_privileges(adapter)
            options = replace(options, warehouse=adapter.location)
        yield Ready(
            eval_set=eval_set,
            set_dir=set_dir.absolute(),
            options=options,
            units=units,
            agent=agent,
            store=store,
            state=state,
            sandbox=sandbox,
            adapter=adapter,
            notices=notices,
        )


def commit_of(directory: Path) -> str:
    """Return the commit that the set's files are at; empty without one or with changes."""

    def git(*arguments: str) -> str | None:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "GIT_OPTIONAL_LOCKS": "0"}
        try:
            done = subprocess.run(
                ["git", "-C", str(directory), *arguments],
                env=environment,
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("status", "--porcelain", "--", ".") != "":
        return ""
    return git("rev-parse", "HEAD") or ""


def _check_command(agent: LocalAgent, sandbox: Sandbox) -> None:
    """Refuse a command that no unit could start; one in the project tree is not there yet."""
    if agent.spec.kind is not AgentKind.COMMAND:
        return
    argv = agent.spec.argv
    if "/" in argv[0] and not argv[0].startswith("/"):
        return
    nowhere = Path(tempfile.gettempdir())
    layout = Layout(nowhere / "unit")
    command = Command(
        argv=argv,
        env=base_environment(layout, agent.search_paths) | agent.extra_env,
        cwd=nowhere,
        stdout=layout.logs,
        stderr=None,
        timeout_seconds=0,
        grace_seconds=0,
        max_output_bytes=0,
    )
    refusal = sandbox.refusal(command, View(writable=(), readable=agent.readable, tmp=layout.tmp))
    if refusal:
        known = "--agent-path" in refusal
        remedy = "" if known else "check its spelling, or name its folder with --agent-path"
        raise UserError(refusal, where="--agent", remedy=remedy)


def _choose(request: RunRequest, eval_set: EvalSet) -> tuple[Task, ...]:
    select = list(request.options.select)
    if request.failed:
        if select:
            raise UserError(
                "can't be combined with --select",
                where="--failed",
                remedy="use --select outcome:failed,tag:x instead",
            )
        store = open_store(request.store_url)
        last = next(finished_runs(store, eval_set.name), None)
        if last is None:
            raise UserError(
                f"set '{eval_set.name}' has no finished run yet",
                where="--failed",
                remedy="leave --failed out",
            )
        results = [result for result in last[0].results() if result.outcome.value != "passed"]
        wanted = {result.task for result in results}
        every = choose_tasks(eval_set, (), request.options.exclude, store_url=request.store_url)
        chosen = tuple(task for task in every if task.id in wanted)
        if not chosen:
            told = f"what did not pass in {last[0].id} is gone or excluded"
            told = told if wanted else f"everything passed in {last[0].id}"
            raise UserError(f"{told}: nothing left to run", where="--failed")
        return chosen
    return choose_tasks(eval_set, select, request.options.exclude, store_url=request.store_url)


def _check_privileges(adapter: BranchAdapter) -> tuple[str, ...]:
    """Refuse a warehouse that can't be branched; return what is only worth a notice."""
    missing = adapter.privileges()
    fatal = [shortfall for shortfall in missing if shortfall.fatal]
    if fatal:
        raise RunError(
            "\n  ".join(f"{one.message}: {one.remedy}" for one in fatal),
            where=adapter.location,
            reason="MissingPrivileges",
        )
    return tuple(f"{one.message}: {one.remedy}" for one in missing)
