"""Build the example's DuckDB warehouse: python build.py FILE."""

import sys
from pathlib import Path

import duckdb


def build(target: Path) -> None:
    """Write a fresh, checkpointed warehouse file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in (target, target.with_name(target.name + ".wal")):
        leftover.unlink(missing_ok=True)
    with duckdb.connect(str(target)) as connection:
        connection.execute(Path(__file__).with_name("warehouse.sql").read_text("utf-8"))
        connection.execute("checkpoint")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
