#!/usr/bin/env bash
# The README's first command: a whole run of an example, with answers that were recorded.
# Arguments are handed on to "proctor run".
set -euo pipefail
cd "$(dirname "$0")/.."

warehouse=.cache/demo/northwind.duckdb
.venv/bin/python examples/northwind/build.py "$warehouse"
# Four of fourteen answers are wrong on purpose, so the gate asks for less than everything.
exec .venv/bin/proctor run examples/northwind \
  --agent replay:examples/northwind/replay.yaml \
  --warehouse "$warehouse" \
  --gate minAccuracy=70 \
  "$@"
