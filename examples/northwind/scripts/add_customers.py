"""Setup: three customers who never ordered."""

import os

import duckdb

with duckdb.connect(os.environ["PROCTOR_WAREHOUSE_DSN"]) as branch:
    branch.execute(
        "insert into raw.customers select 100 + i, 'Silent ' || i, 'DE' from range(3) as t (i)"
    )
    print("customers:", branch.execute("select count(*) from raw.customers").fetchone()[0])
