"""Makes a branch, or drops it, and is killed at one of its statements. A process of its own.

Arguments: base URL, installation, branch name, and `create`, `shared`, `grant` or `drop`. One child
for every statement; prints the branch's name, a number appended, of each child that was killed,
until one comes through.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from proctor_grader.warehouse.base import AdapterOptions, Branch, Mark
from proctor_grader.warehouse.postgres import open_adapter


def die_after(number: int) -> None:
    """Have this process killed when its n-th statement is done, counted from 0."""
    left = number

    def counted(function: Any) -> Any:
        def call(*args: Any, **given: Any) -> Any:
            nonlocal left
            result = function(*args, **given)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return result

        return call

    psycopg.Connection.execute = counted(psycopg.Connection.execute)  # type: ignore[method-assign]  # a library's, in a process made for it


def main() -> None:
    url, installation, prefix, what = sys.argv[1:]
    mark = Mark(installation, "run-1", datetime(2031, 2, 3, tzinfo=UTC))
    adapter = open_adapter(url, AdapterOptions(installation, Path()))
    for number in range(200):
        name = f"{prefix}-{number}"
        shared = Branch(f"{prefix}-shared", "", "")
        if what == "drop":
            adapter.create(name, mark)
        child = os.fork()
        if child == 0:
            die_after(number)
            if what == "create":
                adapter.create(name, mark)
            elif what == "shared":
                adapter.create_shared(name, mark)
            elif what == "grant":
                adapter.grant_read(shared, name, mark)
            else:
                adapter.drop(name)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return
        print(name, flush=True)


main()
