"""Which authoring format a folder (or one file of it) is in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from proctor_grader.contract import MANIFEST_FILE
from proctor_grader.formats.repo import MEBIBYTE, FileFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proctor_grader.formats.repo import Repo
    from proctor_grader.problems import ProblemLog

AUTO = "auto"
EVAL_JSON = "eval-json"
TASKS = "tasks"
EVALS = "evals"
FORMATS = (EVAL_JSON, TASKS, EVALS)

MAX_YAML_BYTES = 16 * MEBIBYTE
"""A larger file counts for no format."""
MAX_PARSED_BYTES = MEBIBYTE
"""A larger file is judged by its lines: parsing takes a second for each MiB."""

_KEYS = {"task_id": TASKS, "evals": EVALS}
_YAML_SUFFIXES = (".yaml", ".yml")
_RUN_FILE = "proctor.yaml"
_KEY_LINE = re.compile(r"^(task_id|evals):", re.MULTILINE)


def detect_format(repo: Repo, only: str | None, problems: ProblemLog) -> str | None:
    """Return the one format that the set is in; None after the error about none or several.

    Args:
        repo: the open set.
        only: name of the one file at the root that was asked for; None for the whole set.
        problems: gets the error, at `.`.

    Source: evals format, section 1.
    """
    first: dict[str, str] = {}
    for path in repo.names if only is None else [only]:
        if path.lower() == MANIFEST_FILE:
            first.setdefault(EVAL_JSON, path)
    for path in _yaml_files(repo) if only is None else [only]:
        if len(first) == len(FORMATS):
            break
        if path.lower().endswith(_YAML_SUFFIXES):
            for found in _formats_of(repo, path):
                first.setdefault(found, path)
    if len(first) == 1:
        return next(iter(first))
    if first:
        kinds = ", ".join(f"{name} ({first[name]})" for name in FORMATS if name in first)
        problems.error(".", f"more than one format found: {kinds}: choose one with --format")
    else:
        problems.error(
            ".",
            "no eval set found (expected eval.json at the root for eval-json, a YAML file with"
            " task_id for tasks, or one with evals for evals)",
        )
    return None


def _yaml_files(repo: Repo) -> Iterator[str]:
    for path in repo.walk():
        if path.endswith(_YAML_SUFFIXES) and path != _RUN_FILE:
            yield path


def _formats_of(repo: Repo, path: str) -> set[str]:
    """Return the formats that a YAML file's top-level keys stand for."""
    content = repo.read_bytes(path, MAX_YAML_BYTES)
    if isinstance(content, FileFault) or not any(key.encode() in content for key in _KEYS):
        return set()
    keys = _top_level_keys(content) if len(content) <= MAX_PARSED_BYTES else None
    if keys is None:
        keys = set(_KEY_LINE.findall(content.decode("utf-8", "replace")))
    return {_KEYS[key] for key in keys if key in _KEYS}


def _top_level_keys(content: bytes) -> set[str] | None:
    """Return the keys of the documents' top mappings; None for what is no YAML.

    Only the parser's events are looked at: nothing is built, so aliases can't blow up.
    """
    import yaml  # noqa: PLC0415  # a set without YAML files never needs it

    keys: set[str] = set()
    depth = 0
    in_mapping = is_key = False
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.NodeEvent):
                if depth == 1 and in_mapping:
                    if is_key and isinstance(event, yaml.ScalarEvent):
                        keys.add(event.value)
                    is_key = not is_key
                if isinstance(event, yaml.CollectionStartEvent):
                    if depth == 0:
                        in_mapping = is_key = isinstance(event, yaml.MappingStartEvent)
                    depth += 1
    except (yaml.YAMLError, UnicodeError):
        return None
    return keys
