"""A run's plan: what was asked, which units come of it. Written once, as `plan.json`."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from proctor_grader.errors import UserError
from proctor_grader.gates import GateSpec
from proctor_grader.jsontext import dump_bytes, load_json
from proctor_grader.model.criterion import ModelRebuiltCriterion
from proctor_grader.model.task import TaskClass
from proctor_grader.model.unit import DEFAULT_VARIANT, RunId, Unit, UnitId, unit_id
from proctor_operator.plan.spec import RunSpec, Timeouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader.model.task import EvalSet, Task

PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run was asked to be, as flags said it; no secrets.

    Attributes:
        agent: `oracle`, `none`, `replay:FILE` or `command:LINE`; FILE absolute.
        warehouse: URL without a password, empty for none.
        agent_env: names of variables handed to the agent; values are never stored.
        agent_path: absolute folders the agent may read.
        network: `host` or `none`.
    """

    agent: str
    warehouse: str = ""
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    trials: int = 1
    parallel: int = 4
    preamble: str = ""
    sandbox: str = "auto"
    network: str = "host"
    isolation: str = "strict"
    agent_env: tuple[str, ...] = ()
    agent_path: tuple[str, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    gates: GateSpec = field(default_factory=GateSpec)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run's units in order, with what they come from.

    Attributes:
        commit: of the set's git repository, empty where it has none.
        started_at: aware UTC, ISO 8601.
    """

    id: RunId
    set_name: str
    format: str
    commit: str
    started_at: str
    options: RunOptions
    units: tuple[Unit, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> RunSpec:
        """Return what the planner has to know."""
        return RunSpec(
            parallelism=self.options.parallel,
            has_warehouse=bool(self.options.warehouse),
            timeouts=self.options.timeouts,
        )

    def to_bytes(self) -> bytes:
        """Return the document that is stored as `plan.json`."""
        return dump_bytes(
            {
                "version": PLAN_VERSION,
                "id": self.id,
                "set": {"name": self.set_name, "format": self.format, "commit": self.commit},
                "started_at": self.started_at,
                "options": asdict(self.options),
                "versions": dict(self.versions),
                "units": [_unit_to_json(unit) for unit in self.units],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> RunPlan:
        """Read a stored plan back.

        Raises:
            UserError: the document is none of this version's.
        """
        try:
            document = load_json(data)
            if document["version"] != PLAN_VERSION:
                raise UserError(
                    f"was written by another version (plan version {document['version']})",
                    where=where,
                    remedy="use the version of Proctor that started the run",
                )
            return cls(
                id=RunId(document["id"]),
                set_name=document["set"]["name"],
                format=document["set"]["format"],
                commit=document["set"]["commit"],
                started_at=document["started_at"],
                options=_options_from_json(document["options"]),
                units=tuple(_unit_from_json(unit) for unit in document["units"]),
                versions=document["versions"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"is no plan of a run ({type(error).__name__}: {error})",
                where=where,
                remedy="start a new run",
            ) from error


def for_set(options: RunOptions, eval_set: EvalSet) -> RunOptions:
    """Return the options with the time that the set gives its own scripts, if it names one."""
    seconds = eval_set.setup.timeout_seconds
    if seconds is None:
        return options
    return replace(options, timeouts=replace(options.timeouts, setup=seconds, teardown=seconds))


def new_run_id(now: datetime | None = None) -> RunId:
    """Return `run-YYYYMMDD-HHMMSS-<6 hex>`."""
    moment = now or datetime.now(UTC)
    return RunId(f"run-{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")


def units_of(tasks: Iterable[Task], *, trials: int = 1) -> tuple[Unit, ...]:
    """Return the units of tasks, trial 1 of everything first.

    Raises:
        UserError: two tasks would share a unit id (a collision of digests).
    """
    chosen = tuple(tasks)
    units = tuple(
        Unit(
            id=unit_id(task.id, DEFAULT_VARIANT, trial),
            task_id=task.id,
            task_class=task.task_class,
            trial=trial,
            has_setup=task.setup is not None,
            has_teardown=task.teardown is not None,
            grades_branch=any(isinstance(c, ModelRebuiltCriterion) for c in task.criteria)
            or task.capture is not None,
        )
        for trial in range(1, trials + 1)
        for task in chosen
    )
    if len({unit.id for unit in units}) != len(units):
        raise UserError("two tasks get the same unit id", remedy="rename one of the tasks")
    return units


def refuse_writes_without_warehouse(eval_set: EvalSet, units: Iterable[Unit]) -> None:
    """Refuse write tasks before anything starts when there is no warehouse to branch.

    Raises:
        UserError: names the first such task and how to go on.
    """
    writing = [unit.task_id for unit in units if unit.task_class is TaskClass.WRITE]
    if writing:
        more = f" and {len(writing) - 1} more" if len(writing) > 1 else ""
        raise UserError(
            f"task '{writing[0]}'{more} of set '{eval_set.name}' writes, and there is no warehouse",
            where="--warehouse",
            remedy="name one (duckdb:///file.duckdb or postgresql://...), "
            "or leave the task out with --exclude class:write",
        )


def _unit_to_json(unit: Unit) -> dict[str, Any]:
    return {
        "id": unit.id,
        "task": unit.task_id,
        "class": unit.task_class.value,
        "variant": unit.variant,
        "trial": unit.trial,
        "setup": unit.has_setup,
        "teardown": unit.has_teardown,
        "grades_branch": unit.grades_branch,
    }


def _unit_from_json(document: Mapping[str, Any]) -> Unit:
    return Unit(
        id=UnitId(document["id"]),
        task_id=document["task"],
        task_class=TaskClass(document["class"]),
        variant=document["variant"],
        trial=document["trial"],
        has_setup=document["setup"],
        has_teardown=document["teardown"],
        grades_branch=document["grades_branch"],
    )


def _options_from_json(document: Mapping[str, Any]) -> RunOptions:
    known = {one.name for one in fields(RunOptions)}
    given = {key: value for key, value in document.items() if key in known}
    for key in ("select", "exclude", "agent_env", "agent_path"):
        given[key] = tuple(given[key])
    timeouts = {
        key: float(value) if isinstance(value, Decimal) else value
        for key, value in given["timeouts"].items()
    }
    given["timeouts"] = Timeouts(**timeouts)
    given["gates"] = GateSpec(**given["gates"])
    return RunOptions(**given)
