"""Which tasks a run takes: the selection language over a set, with earlier runs at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader import SelectionError, select_tasks
from proctor_grader.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from proctor_grader.model.task import EvalSet, Task


def choose_tasks(
    eval_set: EvalSet, select: Sequence[str], exclude: Sequence[str], *, store_url: str
) -> tuple[Task, ...]:
    """Return the chosen tasks in the order of the set.

    Raises:
        UserError: an argument is wrong or nothing is left; holds all messages.
    """
    runs: list[dict[str, Any]] = []
    if any("outcome:" in argument for argument in (*select, *exclude)):
        runs = earlier_outcomes(eval_set.name, store_url)
    try:
        ids = set(select_tasks(eval_set.tasks, list(select), list(exclude), runs=runs))
    except SelectionError as error:
        raise UserError(str(error), where="--select/--exclude", reason="Selection") from error
    return tuple(task for task in eval_set.tasks if task.id in ids)


def earlier_outcomes(set_name: str, store_url: str) -> list[dict[str, Any]]:
    """Return the set's finished runs, oldest first, with the outcomes of each task's units."""
    from proctor_grader.store.table import open_store  # noqa: PLC0415 - only when asked for
    from proctor_operator.local.history import finished_runs  # noqa: PLC0415 - likewise

    runs = []
    for run, _record in finished_runs(open_store(store_url), set_name):
        outcomes: dict[str, list[str]] = {}
        for result in run.results():
            outcomes.setdefault(result.task, []).append(result.outcome.value)
        runs.append({"name": run.id, "outcomes": outcomes})
    return list(reversed(runs))
