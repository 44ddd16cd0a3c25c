"""Compiles what ``proctor check`` and a first run import; all that is installed takes 12 s."""

from __future__ import annotations

import importlib
import pkgutil
import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

# The verbs import their heavy libraries late, and so do the formats; a set is loaded by these.
STARTING = ("proctor_operator.cli", "proctor_grader.formats")
LATE = (
    "yaml",
    "rich.console",
    "rich.table",
    "rich.progress",
    "altair",
    "psycopg",
    "proctor_grader.agents.replay",
    "proctor_grader.warehouse.duckdb",
    "proctor_operator.local.session",
)


def main() -> None:
    """Import what starts, then compile all that came along and has no fresh byte code."""
    for package in STARTING:
        found = pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
        for entry in found:
            importlib.import_module(entry.name)
    for name in LATE:
        importlib.import_module(name)
    for name, module in sorted(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if source is None or not source.endswith(".py") or name == "__main__":
            continue
        compiled = Path(cache_from_source(source))
        if not compiled.exists() or compiled.stat().st_mtime < Path(source).stat().st_mtime:
            py_compile.compile(source)


if __name__ == "__main__":
    try:
        main()
    except (ImportError, SyntaxError) as error:
        # Half-written code must not keep anybody from setting up the tools to mend it.
        print(f"setup: byte code was not compiled: {error}", file=sys.stderr)
