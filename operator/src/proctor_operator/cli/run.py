"""`proctor run`: a whole run, from a set to verdicts, captures and a report."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from proctor_operator.cli.options import (
    ExcludeOption,
    FormatOption,
    Output,
    OutputOption,
    SelectOption,
    StoreOption,
    StrictOption,
    WarehouseOption,
)


class SandboxMode(StrEnum):
    """What hides the answer key from the agent."""

    AUTO = "auto"
    BWRAP = "bwrap"
    NONE = "none"


class Network(StrEnum):
    """What the agent can reach."""

    HOST = "host"
    NONE = "none"


class Isolation(StrEnum):
    """What happens when a branch's role could reach another database."""

    STRICT = "strict"
    WARN = "warn"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run")(run)


LOOKED_AT_WITH_RESUME = frozenset({"resume", "store", "store_retry", "warehouse", "output"})
"""Parameters that count for a resumed run; everything else is as the run was started."""


def run(
    context: typer.Context,
    directory: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Argument(metavar="DIR", help="The eval set; not needed with --resume."),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="AGENT",
            help="command:LINE, replay:FILE, oracle or none.",
        ),
    ] = "",
    warehouse: WarehouseOption = "",
    store: StoreOption = ".proctor",
    select: SelectOption = [],  # noqa: B006 - typer copies it
    exclude: ExcludeOption = [],  # noqa: B006 - typer copies it
    failed: Annotated[
        bool, typer.Option("--failed", help="Only tasks that did not pass in the last run.")
    ] = False,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Repeats of every task.")] = 1,
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, max=64, help="Units at the same time.")
    ] = 4,
    gate: Annotated[
        list[str],
        typer.Option(
            "--gate",
            metavar="NAME=VALUE",
            help="minAccuracy=80, maxErrors=0, maxUngraded=0; without minAccuracy everything "
            "that can be graded must pass. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    resume: Annotated[
        str,
        typer.Option(
            "--resume", metavar="RUN", help="Finish a run that was killed or halted; RUN or last."
        ),
    ] = "",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check set, warehouse, agent and store; start nothing."),
    ] = False,
    preamble: Annotated[str, typer.Option("--preamble", help="Text put before every prompt.")] = "",
    sandbox: Annotated[
        SandboxMode, typer.Option("--sandbox", help="bwrap hides all but the agent's own files.")
    ] = SandboxMode.AUTO,
    network: Annotated[
        Network, typer.Option("--network", help="none cuts the agent off in the sandbox.")
    ] = Network.HOST,
    isolation: Annotated[
        Isolation,
        typer.Option("--isolation", help="warn lets a run go on whose branches reach further."),
    ] = Isolation.STRICT,
    agent_env: Annotated[
        list[str],
        typer.Option("--agent-env", metavar="NAME", help="Variable handed to the agent."),
    ] = [],  # noqa: B006 - typer copies it
    agent_path: Annotated[
        list[Path],
        typer.Option(
            "--agent-path",
            metavar="DIR",
            help="Folder the agent may read and execute from; its bin is on PATH.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    agent_timeout: Annotated[
        float, typer.Option("--agent-timeout", min=1, metavar="SECONDS", help="For each unit.")
    ] = 600,
    script_timeout: Annotated[
        float,
        typer.Option(
            "--script-timeout",
            min=1,
            metavar="SECONDS",
            help="For setup and teardown scripts of sets that name none.",
        ),
    ] = 1800,
    run_timeout: Annotated[
        Optional[float],  # noqa: UP045 - typer reads it
        typer.Option("--run-timeout", min=1, metavar="SECONDS", help="For the whole run."),
    ] = None,
    store_retry: Annotated[
        float,
        typer.Option(
            "--store-retry",
            min=0,
            metavar="SECONDS",
            help="How long a store that can't be reached is waited for before the run halts.",
        ),
    ] = 120,
    set_format: FormatOption = "auto",
    strict: StrictOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Run an eval set and judge it. Exit 0 when every gate holds, 1 when one fails.

    2 on wrong usage, 3 when the run could not be carried out, 130 when it was cancelled.
    """
    from proctor_grader.errors import UserError  # noqa: PLC0415 - only the verb needs it
    from proctor_grader.gates import parse_gates  # noqa: PLC0415 - likewise
    from proctor_operator.cli.loading import load_valid_set  # noqa: PLC0415 - likewise
    from proctor_operator.cli.progress import Progress  # noqa: PLC0415 - likewise
    from proctor_operator.cli.run_output import print_dry_run, print_outcome  # noqa: PLC0415
    from proctor_operator.local.request import RunRequest  # noqa: PLC0415 - likewise
    from proctor_operator.local.runplan import RunOptions  # noqa: PLC0415 - likewise
    from proctor_operator.local.session import (  # noqa: PLC0415 - likewise
        preflight,
        resume_run,
        start_run,
    )
    from proctor_operator.plan.spec import Timeouts  # noqa: PLC0415 - likewise

    if resume and dry_run:
        raise UserError("can't be combined with --resume", where="--dry-run", remedy="leave it out")
    if directory is None and not resume:
        raise UserError("is missing", where="DIR", remedy="name the eval set to run")
    eval_set = (
        None
        if directory is None or resume
        else load_valid_set(directory, set_format=set_format, strict=strict)
    )
    request = RunRequest(
        directory=directory,
        eval_set=eval_set,
        warehouse_url=warehouse,
        store_url=store,
        store_retry_seconds=store_retry,
        failed=failed,
        options=RunOptions(
            agent=_anchored(agent),
            select=tuple(select),
            exclude=tuple(exclude),
            trials=trials,
            parallel=parallel,
            preamble=preamble,
            sandbox=sandbox.value,
            network=network.value,
            isolation=isolation.value,
            agent_env=tuple(agent_env),
            agent_path=tuple(str(path.absolute()) for path in agent_path),
            timeouts=Timeouts(
                agent=agent_timeout, setup=script_timeout, teardown=script_timeout, run=run_timeout
            ),
            gates=parse_gates(gate),
        ),
    )
    if dry_run:
        with preflight(request, lambda text: None) as ready:
            print_dry_run(ready, output)
        return
    with Progress(quiet=output is Output.JSON) as progress:
        if resume and (ignored := _ignored_with_resume(context)):
            progress.notice(
                "a resumed run keeps the set and the options it was started with: "
                f"{', '.join(ignored)} not looked at"
            )
        outcome = resume_run(resume, request, progress) if resume else start_run(request, progress)
    code = print_outcome(outcome, output)
    if outcome.has_stuck_worker:
        sys.stdout.flush()
        os._exit(code)
    raise typer.Exit(code)


def _anchored(agent: str) -> str:
    """The agent with its replay file's path made absolute, so that the run can be resumed."""
    kind, colon, file = agent.partition(":")
    if kind != "replay" or not file.strip():
        return agent
    return f"{kind}{colon}{Path(file).expanduser().absolute()}"


def _ignored_with_resume(context: typer.Context) -> list[str]:
    """What was given on the command line and does not count for a resumed run."""
    ignored = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name not in LOOKED_AT_WITH_RESUME:
            ignored.append("DIR" if parameter.name == "directory" else parameter.opts[0])
    return ignored
