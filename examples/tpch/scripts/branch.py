"""The unit's branch, on either engine."""

import os
from contextlib import AbstractContextManager
from typing import Any

import duckdb
import psycopg


def open_branch() -> AbstractContextManager[Any]:
    """Connect to the branch; the connections of both engines have `execute`."""
    dsn = os.environ["PROCTOR_WAREHOUSE_DSN"]
    if dsn.startswith("postgresql://"):
        return psycopg.connect(dsn, autocommit=True)
    return duckdb.connect(dsn)
