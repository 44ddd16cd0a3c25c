"""A whole run on this machine: claim, carry out, finish; and resuming one that was cut short."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import tempfile
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader import load_set
from proctor_grader.errors import AlreadyExists, ProctorError, RunError, UserError
from proctor_grader.jsontext import load_json
from proctor_grader.model.result import UnitResult
from proctor_grader.model.run import RunEnd
from proctor_grader.store.layout import RunKeys
from proctor_grader.warehouse.table import is_local, open_adapter
from proctor_operator.local.executor import LocalExecutor
from proctor_operator.local.finish import REPORT
from proctor_operator.local.history import StoredRun, find_run
from proctor_operator.local.preflight import (
    commit_of,
    open_parts,
    preflight,
)
from proctor_operator.local.runplan import RunPlan, new_run_id
from proctor_operator.local.setcopy import copy_set, keep_set, unpack_set
from proctor_operator.local.stages import LocalStages
from proctor_operator.local.state import HeldRun, LocalState, remove_tree
from proctor_operator.local.sweep import SweepResult, adapter_options, drop_branches, sweep
from proctor_operator.loop import carry_out
from proctor_operator.plan.snapshot import Cancel, Tally, WaitingUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from proctor_grader.model.run import RunRecord
    from proctor_grader.model.unit import RunId, UnitId
    from proctor_grader.store.base import Store
    from proctor_operator.local.ready import Ready
    from proctor_operator.local.request import RunRequest
    from proctor_operator.local.watcher import Watcher
    from proctor_operator.plan.decision import RunVerdict

__all__ = ["RunOutcome", "preflight", "resume_run", "start_run", "sweep_all"]

EXIT_CANCELLED = 130
_CLOSING_SECONDS = 3.0
_VERSIONS = ("proctor", "duckdb", "psycopg")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended, and where to look.

    Attributes:
        record: None when nothing could be written about it.
        report: path or URL of the report's first page, empty without one.
        resume: the command that goes on with it, empty when it is finished.
        has_stuck_worker: a thread was given up; the process can only end by force.
    """

    run: StoredRun
    verdict: RunVerdict
    record: RunRecord | None
    report: str = ""
    resume: str = ""
    has_stuck_worker: bool = False

    @property
    def run_id(self) -> RunId:
        """The run's id."""
        return self.run.id

    def results(self) -> Iterator[UnitResult]:
        """Yield the results in force."""
        return self.run.results()


def start_run(request: RunRequest, watcher: Watcher) -> RunOutcome:
    """Run a set from its beginning.

    Raises:
        UserError, RunError, TransientError: it could not be started; nothing is left of it.
    """
    with preflight(request, watcher.notice) as ready:
        plan = RunPlan(
            id=new_run_id(),
            set_name=ready.eval_set.name,
            format=ready.eval_set.format,
            commit=commit_of(ready.set_dir),
            started_at=datetime.now(UTC).isoformat(),
            options=ready.options,
            units=ready.units,
            versions=_versions(),
        )
        keys = RunKeys.local(plan.id)
        with _held(ready.state, plan, ready, watcher) as held:
            _claim(ready.store, keys, plan)
            copy_set(ready.set_dir, held.folder.eval_set, ready.store.url)
            keep_set(ready.store, keys, held.folder.eval_set, held.folder.path)
            _sweep_before(ready, watcher)
            waiting = [WaitingUnit(unit) for unit in plan.units]
            return _carry_out(ready, plan, held, waiting=waiting, tally=Tally(), watcher=watcher)


def resume_run(name: str, request: RunRequest, watcher: Watcher) -> RunOutcome:
    """Go on with a run that was killed or halted: units with a result keep it.

    Raises:
        UserError: there is no such run, it has finished, or what it needs is not at hand.
    """
    run = find_run(name, request.store_url)
    record = run.record()
    if record is not None:
        raise UserError(
            f"has finished ({record.end.value})",
            where=run.id,
            remedy="start a new run, or take what did not pass with --failed",
        )
    plan = RunPlan.from_bytes(run.store.get(run.keys.plan), run.id)
    with tempfile.TemporaryDirectory(prefix="proctor-set-") as folder:
        set_dir = unpack_set(run, Path(folder))
        loaded = load_set(set_dir, format=plan.format)
        if loaded.eval_set is None or loaded.errors:
            raise UserError("the set kept with the run does not load", where=run.id)
        options = plan.options
        resumed = replace(
            request,
            options=options,
            warehouse_url=_warehouse_of(request, plan),
            store_url=run.store.url,
        )
        with (
            open_parts(
                resumed, loaded.eval_set, set_dir, plan.units, notice=watcher.notice
            ) as ready,
            _held(ready.state, plan, ready, watcher) as held,
        ):
            _drop_own_leftovers(ready, plan.id)
            remove_tree(held.folder.work)
            remove_tree(held.folder.eval_set)
            copy_set(set_dir, held.folder.eval_set, run.store.url)
            tally, waiting = _what_is_left(run, plan)
            return _carry_out(ready, plan, held, waiting=waiting, tally=tally, watcher=watcher)


def sweep_all(urls: Sequence[str]) -> SweepResult:
    """Drop what gone runs of this installation left, on DuckDB and on the given servers."""
    state = LocalState.open()
    with contextlib.ExitStack() as stack:
        adapters = []
        for url in urls:
            adapter = open_adapter(url, adapter_options(state))
            stack.callback(adapter.close)
            adapters.append(adapter)
        return sweep(state, adapters)


# -- one run ---------------------------------------------------------------------------------


def _carry_out(
    ready: Ready,
    plan: RunPlan,
    held: HeldRun,
    *,
    waiting: list[WaitingUnit],
    tally: Tally,
    watcher: Watcher,
) -> RunOutcome:
    for notice in ready.notices:
        watcher.notice(notice)
    stages = LocalStages(ready, plan, held.folder, watcher)
    watcher.begin(len(plan.units), len(plan.units) - len(waiting))
    executor = LocalExecutor(plan.spec(), waiting, stages, tally=tally, on_retire=watcher.unit_done)
    is_clean = False
    try:
        with _signals(executor.cancel, ready, watcher):
            verdict = carry_out(executor)
        is_clean = True
    finally:
        if not is_clean:
            ready.sandbox.close()
        all_went = executor.close()
        watcher.stop()
    run = StoredRun(plan.id, ready.store, RunKeys.local(plan.id))
    record = stages.record
    is_resumable = verdict.end is RunEnd.FAILED and record is None
    return RunOutcome(
        run=run,
        verdict=verdict,
        record=record,
        report="" if record is None else report_place(ready.store, run.keys),
        resume=_resume_command(ready, plan) if is_resumable else "",
        has_stuck_worker=not all_went,
    )


@contextlib.contextmanager
def _signals(cancel: Callable[[Cancel], None], ready: Ready, watcher: Watcher) -> Iterator[None]:
    """First interrupt: cancel and clean up. Second: stop at once and leave the rest to a sweep."""
    asked = False

    def handle(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            closing = threading.Thread(target=ready.sandbox.close, daemon=True)
            closing.start()
            closing.join(_CLOSING_SECONDS)
            os._exit(EXIT_CANCELLED)
        asked = True
        watcher.notice(
            "cancelling: agents are stopped, branches dropped; once more to stop at once and "
            "leave them to 'proctor sweep'"
        )
        cancel(Cancel(message=f"stopped by {signal.Signals(number).name}"))

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {kind: signal.signal(kind, handle) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextlib.contextmanager
def _held(state: LocalState, plan: RunPlan, ready: Ready, watcher: Watcher) -> Iterator[HeldRun]:
    """Hold the run's folder; it goes once nothing of the run is left in the warehouse."""
    held = state.hold(plan.id, {"warehouse": ready.options.warehouse, "store": ready.store.url})
    try:
        yield held
    finally:
        result = SweepResult()
        is_clean = ready.adapter is None or drop_branches(ready.adapter, plan.id, result)
        try:
            held.release(remove=is_clean)
        except ProctorError as error:
            result.problems.append(str(error))
        for problem in result.problems:
            watcher.notice(f"left behind: {problem}: proctor sweep{_sweep_options(ready)}")


def _claim(store: Store, keys: RunKeys, plan: RunPlan) -> None:
    try:
        store.put_new(keys.plan, plan.to_bytes())
    except AlreadyExists as error:
        raise RunError(
            "another run has this name", where=plan.id, remedy="start it again"
        ) from error


def _sweep_before(ready: Ready, watcher: Watcher) -> None:
    """Drop what killed runs left where this run works too."""
    adapters = [] if ready.adapter is None else [ready.adapter]
    result = sweep(ready.state, adapters)
    if result.dropped:
        watcher.notice(f"dropped {len(result.dropped)} branches of runs that were killed")
    for place in result.elsewhere:
        watcher.notice(
            f"{place} still holds leftovers of a killed run: proctor sweep --warehouse {place}"
        )


def _drop_own_leftovers(ready: Ready, run_id: RunId) -> None:
    if ready.adapter is None:
        return
    result = SweepResult()
    if not drop_branches(ready.adapter, run_id, result):
        raise RunError(
            f"branches of the run are still there ({'; '.join(result.problems)})",
            where=run_id,
            remedy="try again in a moment",
            reason="LeftoversRemain",
        )


def _what_is_left(run: StoredRun, plan: RunPlan) -> tuple[Tally, list[WaitingUnit]]:
    """Tell finished units from those to start anew, each after its highest attempt so far."""
    done: set[str] = set()
    attempts: dict[str, int] = {}
    for stored in run.store.list(run.keys.units):
        name, _, rest = stored.key.removeprefix(run.keys.units).partition("/")
        if rest == "result.json":
            done.add(name)
        elif rest.startswith("attempts/"):
            number = int(rest.split("/")[1])
            attempts[name] = max(attempts.get(name, 0), number)
    tally = Tally()
    waiting = []
    for unit in plan.units:
        if unit.id in done:
            tally = _counted(tally, run, unit.id)
        else:
            waiting.append(WaitingUnit(unit, attempts.get(unit.id, 0) + 1))
    return tally, waiting


def _counted(tally: Tally, run: StoredRun, unit: UnitId) -> Tally:
    result = UnitResult.from_json(load_json(run.store.get(run.keys.result(unit))))
    name = result.outcome.value
    return replace(tally, **{name: getattr(tally, name) + 1})


# -- small things ----------------------------------------------------------------------------


def _warehouse_of(request: RunRequest, plan: RunPlan) -> str:
    """The warehouse to resume on: as given now, else as recorded if it holds no password."""
    return request.warehouse_url or plan.options.warehouse


def report_place(store: Store, keys: RunKeys) -> str:
    """Return where a run's report begins: a path or URL."""
    key = keys.output(f"{REPORT}index.html")
    return f"{store.url.rstrip('/')}/{key}"


def _sweep_options(ready: Ready) -> str:
    place = ready.options.warehouse
    return f" --warehouse {place}" if place and not is_local(place) else ""


def _resume_command(ready: Ready, plan: RunPlan) -> str:
    words = ["proctor", "run", "--resume", plan.id, "--store", ready.store.url]
    if ready.options.warehouse:
        words += ["--warehouse", ready.options.warehouse]
    return shlex.join(words)


def _versions() -> dict[str, str]:
    found = {}
    for name in _VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
