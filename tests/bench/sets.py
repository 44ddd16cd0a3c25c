"""The sets, the base and the process that runs are measured with."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.services.part import cache_folder

PARALLEL = 4
NO_OP = "/bin/true"
BASE_ROWS = 60_000
BASE_COLUMNS = 8


@contextlib.contextmanager
def bench_folder() -> Iterator[Path]:
    """A folder for the block, on the disk that users' own files are on.

    Not below `/tmp`: that is another folder in the sandbox, which would have to make the way there
    in it, and often another file system.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache) as name:
        yield Path(name)


def read_set(folder: Path, tasks: int) -> Path:
    """Write a set of questions about numbers; nobody answers them."""
    return _written(folder, [_question(number) for number in range(tasks)])


def write_set(folder: Path, tasks: int) -> Path:
    """Write a set of build jobs that are graded and captured on their branch."""
    jobs = [
        {
            "id": f"job-{number}",
            "class": "write",
            "prompt_text": "Build it.",
            "grade": {
                "kind": "model_rebuilt",
                "model": "main.facts",
                "expect": {"row_count": BASE_ROWS, "grain": ["c0"]},
            },
            "capture": {"mode": "fingerprint", "tables": ["main.facts"]},
        }
        for number in range(tasks)
    ]
    return _written(folder, jobs)


def write_base(folder: Path) -> Path:
    """Write a DuckDB base of some megabytes."""
    import duckdb

    path = folder / "base.duckdb"
    columns = ", ".join(f"hash(i + {n}) as c{n}" for n in range(1, BASE_COLUMNS))
    with duckdb.connect(str(path)) as base:
        base.execute(
            f"create table facts as select i as c0, {columns} from range({BASE_ROWS}) t(i)"
        )
        base.execute("checkpoint")
    return path


def _question(number: int) -> dict[str, Any]:
    return {
        "id": f"question-{number}",
        "title": f"Question {number}",
        "prompt_text": f"How many orders did customer {number} place in March?",
        "checks": [{"value": number, "tolerance": 0.5}],
    }


def _written(folder: Path, tasks: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True)
    (folder / "eval.json").write_text(json.dumps({"name": "bench", "tasks": tasks}), "utf-8")
    return folder
