"""The eval-json format: `eval.json` -> an eval set. Owns the file and the keys at its top."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proctor_grader.contract import MANIFEST_FILE
from proctor_grader.formats.detect import EVAL_JSON
from proctor_grader.formats.eval_json_script import parse_script_settings
from proctor_grader.formats.eval_json_task import Defaults, TaskReader, class_named
from proctor_grader.formats.exact import tolerance
from proctor_grader.formats.instructions import read_instructions
from proctor_grader.formats.place import Place, Suggestions
from proctor_grader.formats.repo import MEBIBYTE, FaultKind, FileFault
from proctor_grader.formats.strict_json import InvalidJsonError, parse_json, type_name
from proctor_grader.model.task import EvalSet

if TYPE_CHECKING:
    from proctor_grader.formats.repo import Repo, SetFiles
    from proctor_grader.formats.strict_json import JsonObject
    from proctor_grader.model.task import ScriptSettings, Task
    from proctor_grader.problems import ProblemLog

MAX_MANIFEST_BYTES = 32 * MEBIBYTE

_KEYS = (
    "name",
    "description",
    "tasks",
    "project_repo",
    "build_fingerprint",
    "defaults",
    "setup",
)
_LEGACY_TASKS = "questions"
_DEFAULTS_KEYS = ("tolerance", "class")
_FINGERPRINT = re.compile("fp-[0-9a-f]{32}")
_BOM = b"\xef\xbb\xbf"


def load_eval_json(repo: Repo, default_name: str, problems: ProblemLog) -> EvalSet | None:
    """Return the set with every task that has no fault; None when the manifest can't be read.

    Args:
        repo: the open set.
        default_name: of a set whose manifest names none.
        problems: gets every problem.

    Source: eval-json format, sections 2 to 6.
    """
    document = _read_manifest(repo, problems)
    if document is None:
        return None
    parsed = parse_manifest(document, repo, default_name, problems)
    name, text = read_instructions(repo, problems)
    return EvalSet(
        format=EVAL_JSON,
        name=parsed.name,
        description=parsed.description,
        tasks=parsed.tasks,
        claude_md=name,
        claude_md_text=text,
        project_repo=parsed.project_repo,
        build_fingerprint=parsed.build_fingerprint,
        setup=parsed.setup,
    )


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says."""

    name: str
    description: str
    project_repo: str
    build_fingerprint: str
    setup: ScriptSettings
    tasks: tuple[Task, ...]


def parse_manifest(
    document: JsonObject, files: SetFiles, default_name: str, problems: ProblemLog
) -> Manifest:
    """Judge a manifest's keys and read the tasks; pure but for what `files` answers."""
    place = Place(problems, Suggestions())
    legacy = {_LEGACY_TASKS} if "tasks" not in document else set()
    place.unknown_keys((key for key in document if key not in legacy), _KEYS)
    name = _text(document, "name", place)
    description = _text(document, "description", place)
    project_repo = _text(document, "project_repo", place)
    fingerprint = _build_fingerprint(document, place)
    defaults = _defaults(document, place)
    setup = parse_script_settings(document, files, place)
    return Manifest(
        name=name if name.strip() else default_name,
        description=description,
        project_repo=project_repo,
        build_fingerprint=fingerprint,
        setup=setup,
        tasks=_tasks(document, TaskReader(files, defaults), place),
    )


def _read_manifest(repo: Repo, problems: ProblemLog) -> JsonObject | None:
    """Return the manifest's object; None after the one error that ends the load (F1-F3, F5)."""
    content = _manifest_bytes(repo, problems)
    if content is None:
        return None
    if content.startswith(_BOM):
        problems.warning(
            MANIFEST_FILE, "eval.json starts with a byte order mark (BOM): save it without"
        )
        content = content[len(_BOM) :]
    try:
        document = parse_json(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        problems.error(
            MANIFEST_FILE, f"eval.json is not valid JSON: byte {error.start} is not UTF-8"
        )
        return None
    except InvalidJsonError as error:
        problems.error(MANIFEST_FILE, f"eval.json is not valid JSON: {error}")
        return None
    if not isinstance(document, dict):
        problems.error(MANIFEST_FILE, "eval.json must be a JSON object")
        return None
    return document


def _manifest_bytes(repo: Repo, problems: ProblemLog) -> bytes | None:
    # The name is looked up in the listing, since some file systems find it in other spellings.
    if MANIFEST_FILE not in repo.names:
        problems.error(MANIFEST_FILE, "no eval.json at the repo root")
        return None
    content = repo.read_bytes(MANIFEST_FILE, MAX_MANIFEST_BYTES)
    if not isinstance(content, FileFault):
        return content
    if content.refusal:
        problems.error(MANIFEST_FILE, content.refusal)
    elif content.kind is FaultKind.MISSING:
        problems.error(MANIFEST_FILE, "no eval.json at the repo root")
    else:
        problems.error(MANIFEST_FILE, f"eval.json cannot be read: {content.detail}")
    return None


def _text(document: JsonObject, key: str, place: Place) -> str:
    value = document.get(key, "")
    if isinstance(value, str):
        return value
    place.error(f".{key}", f"{key} must be a string (found {type_name(value)})")
    return ""


def _build_fingerprint(document: JsonObject, place: Place) -> str:
    pin = _text(document, "build_fingerprint", place).strip()
    if pin and not _FINGERPRINT.fullmatch(pin):
        place.warning(
            ".build_fingerprint",
            f"build_fingerprint '{pin}' can never match a warehouse"
            " (expected fp- and 32 lower-case hex digits)",
        )
    return pin


def _defaults(document: JsonObject, place: Place) -> Defaults:
    given = document.get("defaults", {})
    if not isinstance(given, dict):
        place.error(".defaults", f"defaults must be an object (found {type_name(given)})")
        given = {}
    inner = place.inside(".defaults")
    inner.unknown_keys(given, _DEFAULTS_KEYS)
    defaults = Defaults()
    if "tolerance" in given:
        share = tolerance(given["tolerance"])
        if share is None:
            inner.error(".tolerance", "defaults.tolerance must be a finite number of at least 0")
        else:
            defaults = replace(defaults, tolerance=share)
    if "class" in given:
        task_class = class_named(given["class"])
        if task_class is None:
            inner.error(".class", "defaults.class must be one of read, write")
        defaults = replace(defaults, task_class=task_class)
    return defaults


def _tasks(document: JsonObject, reader: TaskReader, place: Place) -> tuple[Task, ...]:
    if "tasks" not in document:
        legacy = " (found legacy 'questions' — rename to 'tasks', format v2)"
        found = legacy if _LEGACY_TASKS in document else ""
        place.error(".tasks", f"eval.json has no tasks[]{found}")
        return ()
    entries = document["tasks"]
    if not isinstance(entries, list):
        place.error(".tasks", f"tasks must be a list (found {type_name(entries)})")
        return ()
    if not entries:
        place.error(".tasks", "eval.json declares no tasks")
    tasks = (reader.read(entry, index, place) for index, entry in enumerate(entries))
    return tuple(task for task in tasks if task is not None)
