"""What is done once before any unit: set and project laid out, probe clone, fingerprint."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor_grader.coverage import models_in
from proctor_grader.errors import ProctorError, RunError
from proctor_grader.model.run import Fingerprint
from proctor_grader.model.unit import run6
from proctor_grader.pod.project import copy_project
from proctor_grader.store.archive import pack_tree, unpack_tree
from proctor_grader.warehouse.fingerprint import fingerprint_of
from proctor_operator.local.project import fetch_project, refuse_answer_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import RunKeys
    from proctor_grader.warehouse.base import Branch, BranchAdapter, Mark
    from proctor_operator.local.ready import Ready


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the units of a run share.

    Attributes:
        project: folder to copy for each agent; None without a project.
        shared: the probe clone that read units work on; None without a warehouse.
    """

    project: Path | None = None
    models: Sequence[str] | None = None
    shared: Branch | None = None
    fingerprint: Fingerprint = field(default_factory=lambda: Fingerprint(None))
    notices: tuple[str, ...] = ()


def prepare_run(ready: Ready, keys: RunKeys, folder: Path, mark: Mark) -> Prepared:
    """Lay out what units share, and refuse a warehouse of another build.

    Raises:
        RunError: the project can't be had or holds the answer key, or the fingerprint differs.
        BranchError, WarehouseError: the base can't be cloned.
    """
    project = None
    if ready.eval_set.project_repo:
        project = _lay_out_project(ready, keys, folder)
    models = None if project is None else models_in(project)
    if ready.adapter is None:
        return Prepared(project, models)
    shared = ready.adapter.create_shared(shared_name(mark.run), mark)
    fingerprint = _check_fingerprint(ready, ready.adapter, shared)
    return Prepared(project, models, shared, fingerprint, shared.notes)


def shared_name(run_id: str) -> str:
    """Name a run's shared branch.

    No unit's branch can have the name, since theirs end in six hex digits of their own.
    """
    return f"eval-{run6(run_id)}-shared"


def _check_fingerprint(ready: Ready, adapter: BranchAdapter, shared: Branch) -> Fingerprint:
    pinned = ready.eval_set.build_fingerprint
    try:
        with adapter.open_reader(shared) as reader:
            found = fingerprint_of(reader.shapes(), adapter.engine)
    except ProctorError as error:
        if pinned:
            raise RunError(
                f"cannot check the eval set's build fingerprint {pinned}: {error}",
                reason="FingerprintUnknown",
            ) from error
        return Fingerprint(None, reason=str(error))
    if pinned and pinned != found:
        raise RunError(
            "warehouse does not match the eval set's build fingerprint "
            f"(expected {pinned}, found {found}) — rebuild the warehouse or update the eval set. "
            "Running anyway would grade against golds computed for a different build.",
            reason="FingerprintMismatch",
        )
    return Fingerprint(found, pinned)


def _lay_out_project(ready: Ready, keys: RunKeys, folder: Path) -> Path:
    """Return the run's own copy of the project; a resumed run takes the one that was stored."""
    project = folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    archive = folder / "project.tar.gz"
    if ready.store.exists(keys.project):
        ready.store.get_file(keys.project, archive)
        unpack_tree(archive, project)
        archive.unlink()
        return project
    clone = folder / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    source = fetch_project(ready.eval_set.project_repo, ready.set_dir, clone)
    copy_project(source, project, exclude=ready.set_dir)
    shutil.rmtree(clone, ignore_errors=True)
    refuse_answer_key(project, ready.set_dir, ready.eval_set, source)
    _keep_project(ready.store, keys, project, archive)
    return project


def _keep_project(store: Store, keys: RunKeys, project: Path, archive: Path) -> None:
    """Store the project for a resumed run; one with links is fetched again instead."""
    if pack_tree(project, archive, hard_links=True).is_complete:
        store.put_file(keys.project, archive)
    archive.unlink()
