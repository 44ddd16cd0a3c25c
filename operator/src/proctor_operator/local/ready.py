"""A run that could start: its parts, open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from proctor_grader.model.task import EvalSet
    from proctor_grader.model.unit import Unit
    from proctor_grader.store.base import Store
    from proctor_grader.warehouse.base import BranchAdapter
    from proctor_operator.local.agent import LocalAgent
    from proctor_operator.local.runplan import RunOptions
    from proctor_operator.local.state import LocalState
    from proctor_operator.sandbox.base import Sandbox


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that could start.

    Attributes:
        options: as asked, with the warehouse shown without its password.
        adapter: None without a warehouse.
        set_dir: folder of the set as the user named it.
    """

    eval_set: EvalSet
    set_dir: Path
    options: RunOptions
    units: tuple[Unit, ...]
    agent: LocalAgent
    store: Store
    state: LocalState
    sandbox: Sandbox
    adapter: BranchAdapter | None
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `--dry-run` shows."""
        return {
            "set": self.eval_set.name,
            "format": self.eval_set.format,
            "agent": self.options.agent,
            "warehouse": self.options.warehouse,
            "store": self.store.url,
            "sandbox": self.sandbox.name,
            "parallel": self.options.parallel,
            "units": [
                {"unit": unit.id, "task": unit.task_id, "class": unit.task_class.value}
                for unit in self.units
            ],
            "notices": list(self.notices),
        }
