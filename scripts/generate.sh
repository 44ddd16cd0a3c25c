#!/usr/bin/env bash
# Writes the generated files; with --check it only says which of them are stale.
set -euo pipefail
cd "$(dirname "$0")/.."

render_cli() {
  echo '<!-- Written by "make gen" from the command line itself. -->'
  echo
  # Typer escapes quotes as HTML, which is hard to read in a terminal.
  .venv/bin/python -m typer proctor_operator.cli.app utils docs --name proctor |
    sed "s/&#x27;/'/g; s/&quot;/\"/g"
}

fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

stale=0
generate() {
  local file=$1
  shift
  "$@" >"$fresh"
  if cmp -s "$fresh" "$file"; then return; fi
  if [ "${mode:-}" = --check ]; then
    echo "$file is stale: run 'make gen' and commit it" >&2
    stale=1
  else
    mkdir -p "$(dirname "$file")"
    cat "$fresh" >"$file"
    echo "wrote $file"
  fi
}

mode=${1:-}
generate docs/reference/cli.md render_cli
exit "$stale"
