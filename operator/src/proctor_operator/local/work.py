"""One attempt's own state, handed from stage to stage on worker threads, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor_grader.model.unit import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from proctor_grader.model.result import StageRecord
    from proctor_grader.model.unit import Unit
    from proctor_grader.pod.evidence import Evidence
    from proctor_grader.store.layout import AttemptKeys
    from proctor_grader.warehouse.base import Branch
    from proctor_operator.local.folders import WorkFolder


@dataclass(slots=True)
class AttemptWork:
    """What the stages of one attempt leave for each other.

    Attributes:
        folder: the attempt's own while it lasts.
        branch_name: known before the branch exists, so that it can be dropped in any case.
    """

    unit: Unit
    number: int
    keys: AttemptKeys
    folder: WorkFolder
    branch_name: str
    branch: Branch | None = None
    evidence: Evidence | None = None
    records: dict[str, StageRecord] = field(default_factory=dict)

    def script_folder(self, stage: Stage) -> Path:
        """A script's own folder, beside the agent's."""
        path = self.folder.path
        return path.with_name(f"{path.name}-{stage.value}")

    @property
    def script_folders(self) -> tuple[Path, ...]:
        """The scripts' folders that the attempt may have made."""
        stages = ((Stage.SETUP, self.unit.has_setup), (Stage.TEARDOWN, self.unit.has_teardown))
        return tuple(self.script_folder(stage) for stage, is_declared in stages if is_declared)
