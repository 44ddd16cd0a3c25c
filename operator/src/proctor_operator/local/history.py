"""Earlier runs in a store: finding one by name, and what they came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.errors import NotStored, UserError
from proctor_grader.jsontext import load_json
from proctor_grader.model.result import UnitResult
from proctor_grader.model.run import RunRecord
from proctor_grader.model.unit import RunId
from proctor_grader.problems import suggestion
from proctor_grader.store.layout import LOCAL_RUNS, RunKeys
from proctor_grader.store.table import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proctor_grader.store.base import Store

LAST = "last"
DEFAULT_STORE = ".proctor"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run's place in a store."""

    id: RunId
    store: Store
    keys: RunKeys

    def record(self) -> RunRecord | None:
        """Return what came of it; None while it has not finished."""
        try:
            return RunRecord.from_json(load_json(self.store.get(self.keys.run)))
        except NotStored:
            return None

    def finished(self) -> RunRecord:
        """Return what came of it.

        Raises:
            UserError: it has not finished; says how to finish it.
        """
        record = self.record()
        if record is None:
            raise UserError(
                "has not finished", where=self.id, remedy=f"proctor run --resume {self.id}"
            )
        return record

    def results(self) -> Iterator[UnitResult]:
        """Yield the results in force, in the order of the plan; streamed."""
        for line in self.store.get(self.keys.output("results.jsonl")).splitlines():
            yield UnitResult.from_json(load_json(line))


def run_ids(store: Store) -> list[RunId]:
    """Ids of all runs in a store, oldest first (their names begin with their time)."""
    return sorted(RunId(name) for name in store.list_folders(LOCAL_RUNS))


def find_run(name: str, store_url: str | None = None) -> StoredRun:
    """Find a run by `last`, an id, or the path of its folder.

    Raises:
        UserError: there is no such run; names those that come close.
    """
    path = Path(name)
    if name != LAST and path.name.startswith("run-") and path.parent.name == "local":
        name, store_url = path.name, str(path.parent.parent.parent)
    store = open_store(store_url or DEFAULT_STORE)
    known = run_ids(store)
    if name == LAST:
        if not known:
            raise UserError(
                "there is no run yet", where=store.url, remedy="proctor run DIR --agent ..."
            )
        name = known[-1]
    if name not in known:
        raise UserError(
            f"no such run '{name}'{suggestion(name, known)}",
            where=store.url,
            remedy="give an id, the path of the run's folder, or 'last' (and --store if it is "
            "not in this folder's .proctor)",
        )
    return StoredRun(RunId(name), store, RunKeys.local(RunId(name)))


def finished_runs(store: Store, set_name: str) -> Iterator[tuple[StoredRun, RunRecord]]:
    """Yield the finished runs of a set, newest first."""
    for run_id in reversed(run_ids(store)):
        run = StoredRun(run_id, store, RunKeys.local(run_id))
        record = run.record()
        if record is not None and record.set_name == set_name:
            yield run, record
