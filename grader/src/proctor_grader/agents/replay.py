"""The `replay` agent: recorded answers, played back in a process of their own.

`python -m proctor_grader.agents.replay ENTRY.json` plays one entry: sleep, sql, files, answer,
exit. It gets no other unit's entry, and starts light: no library but what the branch needs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from proctor_grader import contract
from proctor_grader.errors import ProctorError

if TYPE_CHECKING:
    from collections.abc import Mapping

EXIT_SQL_FAILED = 1
EXIT_BAD_ENTRY = 2


@dataclass(frozen=True, slots=True)
class ReplayEntry:
    """What is played back for one unit, in this order.

    Attributes:
        answer: None leaves no answer.
        sql: statements run on the branch; a failing one ends it with exit 1 and no answer.
        files: path below the working directory -> text.
        exit: the process's exit code.
        sleep: seconds.
    """

    answer: str | None = None
    sql: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    exit: int = 0
    sleep: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the document that the process reads."""
        return {
            "answer": self.answer,
            "sql": list(self.sql),
            "files": dict(self.files),
            "exit": self.exit,
            "sleep": self.sleep,
        }


def play(entry: ReplayEntry, environment: Mapping[str, str]) -> int:
    """Play one entry in the folders that the environment names; returns the exit code."""
    if entry.sleep:
        time.sleep(entry.sleep)
    output = Path(environment[contract.OUTPUT])
    if entry.sql and not _run_statements(entry.sql, environment, output):
        return EXIT_SQL_FAILED
    if not _write_files(entry.files, Path(environment[contract.WORKDIR])):
        return EXIT_BAD_ENTRY
    if entry.answer is not None:
        answer = entry.answer.encode("utf-8", "replace")
        (output / contract.ANSWER_FILE).write_bytes(answer)
    return entry.exit


def is_inside(name: str) -> bool:
    """Whether a path names something below the working directory."""
    path = PurePosixPath(name)
    is_below = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return is_below and "\0" not in name


def _write_files(files: Mapping[str, str], work: Path) -> bool:
    root = work.resolve()
    for name, text in files.items():
        path = work / name
        # The project may hold a link under one of the path's names.
        if not path.resolve().is_relative_to(root):
            sys.stderr.write(f"replay: '{name}' leads out of the working directory\n")
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        except OSError as error:
            sys.stderr.write(f"replay: '{name}' can't be written ({error.strerror})\n")
            return False
    return True


def _run_statements(
    statements: tuple[str, ...], environment: Mapping[str, str], output: Path
) -> bool:
    from proctor_grader.warehouse.table import execute  # noqa: PLC0415 - most entries have no SQL

    dsn = environment.get(contract.WAREHOUSE_DSN)
    if not dsn:
        sys.stderr.write("replay: the entry has sql, and there is no warehouse\n")
        return False
    with (output / contract.EVENTS_FILE).open("a", encoding="utf-8", errors="replace") as events:
        results = execute(dsn, statements)
        for statement, result in zip(statements, results, strict=False):
            event = {
                "ts": datetime.now(UTC).isoformat(),
                "tool": "sql",
                "input": {"sql": statement},
                "result": {"error": result.error}
                if result.error
                else {"columns": result.columns, "rows": result.rows, "count": result.row_count},
                "is_error": bool(result.error),
            }
            events.write(json.dumps(event, ensure_ascii=False) + "\n")
            if result.error:
                sys.stderr.write(f"replay: {result.error}\n")
                return False
            sys.stdout.write(f"{statement}\n{result.row_count} rows\n")
    return True


def main() -> int:
    """Play the entry that the command line names."""
    try:
        document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        entry = ReplayEntry(
            answer=document["answer"],
            sql=tuple(document["sql"]),
            files=document["files"],
            exit=document["exit"],
            sleep=document["sleep"],
        )
    except (IndexError, OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"replay: the entry can't be read ({error})\n")
        return EXIT_BAD_ENTRY
    try:
        return play(entry, os.environ)
    except ProctorError as error:
        sys.stderr.write(f"replay: {error}\n")
        return EXIT_SQL_FAILED


if __name__ == "__main__":
    sys.exit(main())
