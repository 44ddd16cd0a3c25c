"""Proctor's data plane: what an eval is, and everything that runs next to the data.

The names below are the public API; everything else is private. They are imported when first used,
so that loading a set costs no database and no cloud library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor_grader.criteria.number import grade_checks
    from proctor_grader.formats.load import LoadedSet, load_set
    from proctor_grader.model.result import Outcome, Verdict
    from proctor_grader.numerals import extract_numbers
    from proctor_grader.selection import SelectionError, select_tasks
    from proctor_grader.warehouse.fingerprint import build_fingerprint

__all__ = [
    "LoadedSet",
    "Outcome",
    "SelectionError",
    "Verdict",
    "build_fingerprint",
    "extract_numbers",
    "grade_checks",
    "load_set",
    "select_tasks",
]

_HOMES = {
    "LoadedSet": "formats.load",
    "Outcome": "model.result",
    "SelectionError": "selection",
    "Verdict": "model.result",
    "build_fingerprint": "warehouse.fingerprint",
    "extract_numbers": "numerals",
    "grade_checks": "criteria.number",
    "load_set": "formats.load",
    "select_tasks": "selection",
}


def __getattr__(name: str) -> Any:
    """Import a public name's home when the name is first asked for (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
