"""`load_set`: a folder (or a file in it) -> a loaded set with everything that is wrong with it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor_grader.contract import MANIFEST_FILE
from proctor_grader.errors import UserError
from proctor_grader.formats.detect import AUTO, EVAL_JSON, FORMATS, detect_format
from proctor_grader.formats.eval_json import load_eval_json
from proctor_grader.formats.naming import name_from_url
from proctor_grader.formats.repo import Repo, cannot_read
from proctor_grader.model.task import EvalSet
from proctor_grader.problems import ProblemLog, Severity, suggestion

if TYPE_CHECKING:
    from proctor_grader.problems import Problem


@dataclass(frozen=True, slots=True)
class LoadedSet:
    """What came of loading a set.

    Attributes:
        eval_set: holds the tasks without a fault; None when nothing could be read. Not to be run
            unless `errors` is empty.
        errors: refuse the set; in the order of the set's files and keys.
        warnings: deserve a look.
        format: that the set is in, empty when that isn't clear.
        name: of the set, or what it would be called.
    """

    eval_set: EvalSet | None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    format: str = ""
    name: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the normalised set with its problems; numbers are ints and Decimals."""
        shown = self.eval_set or EvalSet(self.format, self.name, description="", tasks=())
        return shown.to_json() | {
            "errors": [problem.to_json() for problem in self.errors],
            "warnings": [problem.to_json() for problem in self.warnings],
        }


def load_set(
    path: str | os.PathLike[str],
    *,
    format: str = AUTO,
    strict: bool = False,
    source_url: str = "",
) -> LoadedSet:
    """Load an eval set, collecting everything that is wrong with it.

    Args:
        path: the set's folder or a file in it, to which the set is then restricted; `eval.json`
            stands for its folder.
        format: `auto`, or the format's name, which is then not questioned.
        strict: make every warning an error.
        source_url: the git URL that the folder was cloned from; names a set without a name.

    Raises:
        UserError: there is no such folder or file, it can't be read, or no such format.
    """
    if format not in {AUTO, *FORMATS}:
        known = ", ".join([AUTO, *FORMATS])
        raise UserError(
            f"unknown format '{format}'{suggestion(format, FORMATS)}",
            where="format",
            remedy=f"use one of {known}",
        )
    folder, only = _folder_and_file(path)
    name = name_from_url(source_url) or _folder_name(folder)
    problems = ProblemLog()
    with Repo(folder) as repo:
        found = detect_format(repo, only, problems) if format == AUTO else format
        eval_set = _load(repo, found, only, name, problems)
    if strict:
        problems.promote_warnings()
    return LoadedSet(
        eval_set=eval_set,
        errors=problems.of(Severity.ERROR),
        warnings=problems.of(Severity.WARNING),
        format=found or "",
        name=name if eval_set is None else eval_set.name,
    )


def _load(
    repo: Repo, found: str | None, only: str | None, name: str, problems: ProblemLog
) -> EvalSet | None:
    if found == EVAL_JSON:
        if only is None or only.lower() == MANIFEST_FILE:
            return load_eval_json(repo, name, problems)
        problems.error(MANIFEST_FILE, "no eval.json at the repo root")
    elif found is not None:
        problems.error(".", f"this version reads {EVAL_JSON} sets only (found format {found})")
    return None


def _folder_and_file(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Return the set's folder and the file it is restricted to, None for the whole set."""
    given = Path(path)
    # A manifest as argument stands for its folder, whatever it is: F1 and F2 judge it there.
    names_manifest = given.name.lower() == MANIFEST_FILE
    try:
        mode = given.stat(follow_symlinks=not names_manifest).st_mode
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from error
    if stat.S_ISDIR(mode):
        return given, None
    return given.parent, given.name


def _folder_name(folder: Path) -> str:
    name = os.path.basename(os.path.abspath(folder))
    return os.fsencode(name).decode("utf-8", "replace")
