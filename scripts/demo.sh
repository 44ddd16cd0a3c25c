#!/usr/bin/env bash
# The README's first command: a whole run of an example, with answers that were recorded.
# Arguments are handed on to "proctor run".
set -euo pipefail
cd "$(dirname "$0")/.."

exec .venv/bin/proctor run examples/northwind \
  --agent replay:examples/northwind/replay.yaml \
  --warehouse duckdb:///examples/northwind/northwind.duckdb \
  "$@"
