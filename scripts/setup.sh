#!/usr/bin/env bash
# Makes .venv from uv.lock: "setup.sh run" for the program alone, "setup.sh dev" with all tools.
# Needs Python 3.11 or newer with venv and pip; brings uv along when there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:?"usage: setup.sh run|dev"}
UV_VERSION=0.13.9

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  # A version manager's shim may exist and still not run, so each is tried.
  local name
  for name in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11; do
    if new_enough "$name"; then
      "$name" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  echo "setup: no Python 3.11 or newer found: install python3 and python3-venv, or set PYTHON" >&2
  return 1
}

find_uv() {
  if command -v uv >/dev/null && uv --version >/dev/null 2>&1; then
    command -v uv
    return
  fi
  local folder=.cache/uv-$UV_VERSION
  if [ ! -x "$folder/bin/uv" ]; then
    rm -rf "$folder"
    "$1" -m venv "$folder" >&2 || {
      rm -rf "$folder"
      echo "setup: $1 cannot make a virtual environment: apt-get install python3-venv" >&2
      return 1
    }
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
      "uv==$UV_VERSION" >&2
  fi
  echo "$folder/bin/uv"
}

python=$(find_python)
uv=$(find_uv "$python")

options=(--frozen --quiet)
# The program alone leaves tools in place that an earlier "dev" brought.
if [ "$what" = run ]; then options+=(--no-dev --inexact); fi
export UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=.venv
"$uv" sync --python "$python" "${options[@]}"

# uv writes no byte code, and half a second of every start would go into compiling.
.venv/bin/python scripts/compile_start.py
