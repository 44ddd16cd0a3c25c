"""Generate the warehouse: python dbgen.py EXTENSION FILE ANSWERS, with the Python of build.py.

Works offline: the extension is loaded by its path, and DuckDB may fetch no other.
"""

import json
import sys
from pathlib import Path

import duckdb

SCALE_FACTOR = 0.01


def generate(extension: Path, target: Path) -> dict[str, str]:
    """Write a fresh, checkpointed file; returns the published answers by query number."""
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(str(target), config={**offline}) as connection:
        connection.load_extension(str(extension))
        connection.execute(f"call dbgen(sf = {SCALE_FACTOR})")
        connection.execute("create schema marts")
        answers = connection.execute(
            "select query_nr, answer from tpch_answers() where scale_factor = ? order by query_nr",
            [SCALE_FACTOR],
        ).fetchall()
        connection.execute("checkpoint")
    return {str(number): answer for number, answer in answers}


if __name__ == "__main__":
    published = generate(Path(sys.argv[1]), Path(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(published, indent=2), "utf-8")
