"""The JSON Schemas of docs/schemas, ready to hold documents against them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs
from referencing import Registry, Resource

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its file's name without suffix."""
    files = sorted(FOLDER.glob("*.json"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in files}


@cache
def _registry() -> Registry[Any]:
    resources = {f"{name}.json": Resource.from_contents(one) for name, one in schemas().items()}
    return Registry().with_resources(resources.items())


def faults(name: str, document: Any) -> list[str]:
    """Say where a document does not fit a schema; empty when it does."""
    checker = Draft202012Validator.FORMAT_CHECKER
    validator = Draft202012Validator(
        {"$ref": f"{name}.json"}, registry=_registry(), format_checker=checker
    )
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
