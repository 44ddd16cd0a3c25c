"""Running a set's setup or teardown script: its command, environment and log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.unit import Stage


@dataclass(frozen=True, slots=True)
class ScriptInput:
    """What a script is given.

    Attributes:
        path: as authored, relative to the set.
        env_file: the set's own entries; they never overrule the run's six names.
    """

    path: str
    task: str
    phase: Stage
    dsn: str
    env_file: Mapping[str, str]


def script_command(given: ScriptInput) -> tuple[str, ...]:
    """Return the argument list; file mode and first line of the script do not matter.

    Source: eval-json format, section 8.
    """
    program = "python3" if given.path.endswith(".py") else "sh"
    return (program, f"./{given.path}", given.task)


def script_environment(base: Mapping[str, str], given: ScriptInput) -> dict[str, str]:
    """Return a script's whole environment.

    Args:
        base: PATH, HOME, TMPDIR and the like; an env file may overrule these.
        given: what the set and the run say.
    """
    own = {
        contract.TASK: given.task,
        contract.TASK_ALIAS: given.task,
        contract.PHASE: given.phase.value,
        contract.PHASE_ALIAS: given.phase.value,
        contract.WAREHOUSE_DSN: given.dsn,
        contract.WAREHOUSE_DSN_ALIAS: given.dsn,
    }
    return dict(base) | dict(given.env_file) | own
