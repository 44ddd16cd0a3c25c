"""`python -m tests.bench [NAME...]`: measure, print one JSON document, fail when a bar does."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

NAMES = ("overhead", "scaling", "tables", "memory")


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    document = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "measurements": {}}
    is_ok = True
    for name in names or NAMES:
        print(f"measuring {name}", file=sys.stderr)
        found = import_module(f"tests.bench.{name}").measure()
        document["measurements"][name] = found.to_json()  # type: ignore[index]
        is_ok = is_ok and found.ok
    print(json.dumps(document | {"ok": is_ok}, indent=2))
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
