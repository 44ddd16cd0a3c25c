"""Earlier runs in a store: finding one by name, and what they came to."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.errors import NotStored, RunError, UserError
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
        """Return what came of it; None while it has not finished.

        Raises:
            RunError: the document is damaged.
        """
        try:
            data = self.store.get(self.keys.run)
        except NotStored:
            return None
        with _reading(self.keys.run):
            return RunRecord.from_json(load_json(data))

    def finished(self) -> RunRecord:
        """Return what came of it.

        Raises:
            UserError: it has not finished; says how to finish it.
        """
        record = self.record()
        if record is None:
            raise UserError(
                "has not finished",
                where=self.id,
                remedy=f"proctor run --resume {self.id} --store {self.store.url}",
            )
        return record

    def results(self) -> Iterator[UnitResult]:
        """Yield the results in force, in the order of the plan; streamed.

        Raises:
            RunError: the document is damaged.
        """
        key = self.keys.output("results.jsonl")
        for line in self.store.get(key).splitlines():
            with _reading(key):
                result = UnitResult.from_json(load_json(line))
            yield result


@contextmanager
def _reading(key: str) -> Iterator[None]:
    """Tell of a stored document that is not as it was written."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RunError(
            f"is damaged ({type(error).__name__}: {error})",
            where=key,
            remedy="restore it, or remove the run's folder",
            reason="DamagedRun",
        ) from error


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
    """Yield the finished runs of a set, newest first; a damaged record hides no other run."""
    for run_id in reversed(run_ids(store)):
        run = StoredRun(run_id, store, RunKeys.local(run_id))
        try:
            record = run.record()
        except RunError:
            continue
        if record is not None and record.set_name == set_name:
            yield run, record
