"""A measurement's parts in processes of their own: what one leaves in memory can't help another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.clock import Cost

ROOT = Path(__file__).parents[2]
_TIMEOUT_SECONDS = 1800


class ChildError(Exception):
    """A part failed; the text is what it said."""


def run_child(module: str, *arguments: object, python: str | Path = sys.executable) -> Any:
    """Run `python -m module arguments`; return the JSON document it prints on its last line."""
    done = subprocess.run(
        [str(python), "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ChildError(f"{module} {arguments}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def cost_of(document: dict[str, float]) -> Cost:
    """Read a cost that a child has printed."""
    return Cost(document["wall"], document["cpu"], document["others"])
