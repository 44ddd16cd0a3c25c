"""Small sets and warehouses for stories that run the whole command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb


def write_set(folder: Path, *tasks: dict[str, Any], **top: Any) -> Path:
    """Write an eval set whose tasks have their prompts inline."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"name": folder.name, "tasks": list(tasks), **top}
    (folder / "eval.json").write_text(json.dumps(document), "utf-8")
    return folder


def read_task(name: str, value: int = 42, **more: Any) -> dict[str, Any]:
    """A question whose answer is a number."""
    return {
        "id": name,
        "prompt_text": f"What is {name}?",
        "checks": [{"value": value, "tolerance": 0}],
        **more,
    }


def write_task(name: str, **more: Any) -> dict[str, Any]:
    """A build job that makes `built` with three rows."""
    return {
        "id": name,
        "class": "write",
        "prompt_text": "Build it.",
        "grade": {
            "kind": "model_rebuilt",
            "model": "main.built",
            "expect": {"row_count": 3, "grain": ["id"]},
        },
        **more,
    }


def write_warehouse(path: Path) -> Path:
    """Write a small DuckDB warehouse."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path)) as base:
        base.execute("create or replace table numbers as select i as id from range(100) as t (i)")
        base.execute("checkpoint")
    return path


def write_agent(path: Path, script: str) -> str:
    """Write a shell agent below a folder of its own; returns what stands after `--agent`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return f"command:sh {path}"
