"""What the command line asks for, before anything was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from proctor_grader.model.task import EvalSet
    from proctor_operator.local.runplan import RunOptions


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One `proctor run`.

    Attributes:
        directory: of the set; None when a stored run is resumed; likewise `eval_set`.
        warehouse_url: may hold a password, so it is never stored or shown; empty for none.
        store_retry_seconds: how long an outage of the store is waited for.
        failed: take what did not pass in the set's last finished run.
    """

    directory: Path | None
    eval_set: EvalSet | None
    options: RunOptions
    warehouse_url: str = ""
    store_url: str = ".proctor"
    store_retry_seconds: float = 120.0
    failed: bool = False
