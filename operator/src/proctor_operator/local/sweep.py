"""Dropping what runs of this installation left behind when their process was killed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from proctor_grader.errors import ProctorError
from proctor_grader.warehouse.base import AdapterOptions
from proctor_grader.warehouse.table import is_local, open_local_leftovers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proctor_grader.warehouse.base import BranchAdapter
    from proctor_operator.local.state import LocalState


@dataclass(slots=True)
class SweepResult:
    """What a sweep did.

    Attributes:
        dropped: names of branches, with the place they were in.
        runs: ids of runs whose folder is gone now.
        elsewhere: warehouses (without password) that still hold leftovers of gone runs, because
            nobody gave this sweep a way in.
        problems: what could not be dropped, and why.
    """

    dropped: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def sweep(state: LocalState, servers: Sequence[BranchAdapter]) -> SweepResult:
    """Drop the branches of gone runs on this machine and on the given servers, then their folders.

    A run's folder stays while its warehouse still holds something of it, so that it is named
    again the next time.
    """
    with contextlib.closing(open_local_leftovers(adapter_options(state))) as local:
        return _sweep(state, [*servers, local])


def adapter_options(state: LocalState, isolation: str = "strict") -> AdapterOptions:
    """Return what adapters of this machine are built from."""
    return AdapterOptions(state.installation, state.branches, isolation=isolation)


def _sweep(state: LocalState, adapters: Sequence[BranchAdapter]) -> SweepResult:
    result = SweepResult()
    reached = {adapter.location for adapter in adapters}
    for held in state.gone():
        warehouse = held.folder.read_record().get("warehouse", "")
        is_reached = not warehouse or warehouse in reached or is_local(warehouse)
        is_done = is_reached
        for adapter in adapters:
            is_done = drop_branches(adapter, held.folder.id, result) and is_done
        if not is_reached:
            result.elsewhere.append(warehouse)
        try:
            held.release(remove=is_done)
        except ProctorError as error:
            result.problems.append(str(error))
            continue
        if is_done:
            result.runs.append(held.folder.id)
    result.elsewhere = sorted(set(result.elsewhere))
    _drop_expired(state, adapters, result)
    return result


def drop_branches(adapter: BranchAdapter, run_id: str, result: SweepResult) -> bool:
    """Drop everything that carries a run's mark; True when nothing of it is left."""
    try:
        records = [record for record in adapter.list_marked() if record.mark.run == run_id]
    except ProctorError as error:
        _note(adapter, error, result)
        return False
    dropped = [_drop(adapter, record.name, record.busy, result) for record in records]
    return all(dropped)


def _drop_expired(
    state: LocalState, adapters: Iterable[BranchAdapter], result: SweepResult
) -> None:
    """Drop marked branches whose run has no folder any more, or whose time is over."""
    for adapter in adapters:
        try:
            records = adapter.list_marked()
        except ProctorError as error:
            _note(adapter, error, result)
            continue
        # Only now: a run holds its lock before it makes its first branch.
        alive, now = state.alive(), datetime.now(UTC)
        for record in records:
            if record.mark.run not in alive or record.mark.expires < now:
                _drop(adapter, record.name, record.busy, result)


def _drop(adapter: BranchAdapter, name: str, busy: bool, result: SweepResult) -> bool:
    if busy:
        result.problems.append(f"{adapter.location}: '{name}' is being created right now")
        return False
    try:
        adapter.drop(name)
    except ProctorError as error:
        result.problems.append(f"{adapter.location}: '{name}' can't be dropped: {error}")
        return False
    result.dropped.append(f"{adapter.location}: {name}")
    return True


def _note(adapter: BranchAdapter, error: ProctorError, result: SweepResult) -> None:
    """Tell once that a place could not be looked at."""
    told = str(error) if error.where == adapter.location else f"{adapter.location}: {error}"
    if told not in result.problems:
        result.problems.append(told)
