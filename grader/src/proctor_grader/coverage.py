"""Which models of a project the executed tasks declare: figures (pure), and finding the models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from proctor_grader.formats.repo import MEBIBYTE, FileFault, Repo
from proctor_grader.identifiers import last_part

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from proctor_grader.model.task import Task

MANIFEST_PATH = "target/manifest.json"
MAX_MANIFEST_BYTES = 256 * MEBIBYTE
OTHER_LAYER = "other"
LAYERS = ("staging", "intermediate", "marts", OTHER_LAYER)

_LAYER_FOLDERS = {
    "staging": "staging",
    "stg": "staging",
    "intermediate": "intermediate",
    "int": "intermediate",
    "marts": "marts",
    "mart": "marts",
}
_LAYER_PREFIXES = {
    "stg_": "staging",
    "int_": "intermediate",
    "fct_": "marts",
    "dim_": "marts",
}
_TENTH = Decimal("0.1")


def layer_of(path: str) -> str:
    """Return a model's layer: of its first folder that names one, else of its file's prefix.

    Source: eval-json format, section 11.
    """
    *folders, file = path.lower().replace("\\", "/").split("/")
    for folder in folders:
        if folder in _LAYER_FOLDERS:
            return _LAYER_FOLDERS[folder]
    for prefix, layer in _LAYER_PREFIXES.items():
        if file.startswith(prefix):
            return layer
    return OTHER_LAYER


def coverage_of(
    tasks: Iterable[Task | Mapping[str, Any]], model_paths: Sequence[str] | None
) -> dict[str, Any]:
    """Return what the executed tasks declare and how much of the project that is.

    Args:
        tasks: or mappings with `covers` and `builds`.
        model_paths: files of the project's models; None or empty without a project.

    Returns:
        `declared` (sorted), `models_total`, `models_covered`, `pct`, `by_layer` (layer ->
        total, covered, pct) and `marts_pct`; what can't be told is None. Percentages have one
        decimal, half up.

    Source: eval-json format, section 11.
    """
    declared = {last_part(table).lower() for task in tasks for table in _declared(task)}
    totals = dict.fromkeys(LAYERS, 0)
    covered = dict.fromkeys(LAYERS, 0)
    for path in model_paths or ():
        layer = layer_of(path)
        totals[layer] += 1
        covered[layer] += _model_name(path) in declared
    has_models = bool(model_paths)
    total, hits = sum(totals.values()), sum(covered.values())
    return {
        "declared": sorted(declared),
        "models_total": total if has_models else None,
        "models_covered": hits if has_models else None,
        "pct": _percent(hits, total),
        "by_layer": {
            layer: {
                "total": totals[layer],
                "covered": covered[layer],
                "pct": _percent(covered[layer], totals[layer]),
            }
            for layer in LAYERS
            if totals[layer]
        },
        "marts_pct": _percent(covered["marts"], totals["marts"]),
    }


def models_in(project: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the files of a project's models, sorted; empty when there are none.

    They are those of dbt's manifest if it parses, else every `models/**/*.sql`. Links are never
    followed.

    Raises:
        UserError: there is no such folder, or it can't be read.
    """
    with Repo(project) as repo:
        listed = _manifest_models(repo)
        if listed is None:
            listed = [path for path in repo.walk("models", hidden=True) if path.endswith(".sql")]
    return tuple(sorted(listed))


def _declared(task: Task | Mapping[str, Any]) -> Iterable[str]:
    if isinstance(task, Mapping):
        return (*task.get("covers", ()), *task.get("builds", ()))
    return (*task.covers, *task.builds)


def _model_name(path: str) -> str:
    return path.lower().replace("\\", "/").rpartition("/")[2].rsplit(".", 1)[0]


def _percent(part: int, whole: int) -> Decimal | None:
    if not whole:
        return None
    return (Decimal(100 * part) / whole).quantize(_TENTH, ROUND_HALF_UP)


def _manifest_models(repo: Repo) -> list[str] | None:
    """Return the model files that dbt's manifest lists; None when there is no readable one."""
    content = repo.read_bytes(MANIFEST_PATH, MAX_MANIFEST_BYTES)
    if isinstance(content, FileFault):
        return None
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict):
        return None
    models = [node for node in nodes.values() if isinstance(node, dict)]
    paths = [
        node.get("original_file_path") or node.get("path")
        for node in models
        if node.get("resource_type") == "model"
    ]
    return [path for path in paths if isinstance(path, str)]
