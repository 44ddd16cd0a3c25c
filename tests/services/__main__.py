"""``python -m tests.services install`` | ``status`` | ``keep KIND FOLDER`` (used by the tests)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.services.install import InstallError, install
from tests.services.part import PARTS


def main() -> int:
    """Run one verb; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.services", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("install", help="install what is missing (needs root)")
    verbs.add_parser("status", help="say what is there")
    keep = verbs.add_parser("keep", help="run a server for a test session")
    keep.add_argument("kind", choices=["postgres", "s3"])
    keep.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.verb == "keep":
        # Imported here: 'install' must work without the packages that the servers' clients need.
        from tests.services.keeper import keep as keep_server

        keep_server(given.kind, given.folder)
    elif given.verb == "status":
        for part in PARTS:
            print(f"{part.name}: {part.find() or 'missing'}")
    else:
        try:
            install()
        except InstallError as error:
            print(f"services: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
