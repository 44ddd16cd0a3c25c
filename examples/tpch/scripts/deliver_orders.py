"""Setup: a delivery of 40 orders in staging.orders, 25 of them known already in an older version.

New keys lie above 60,000, where the benchmark's end at this scale.
"""

from branch import open_branch

NEW = """
    insert into staging.orders
    select o_orderkey + 60000, o_custkey, 'O', o_totalprice, date '1998-08-03', o_orderpriority,
           o_clerk, o_shippriority, 'new'
    from orders order by o_orderkey limit 15
"""
KNOWN = """
    insert into staging.orders
    select o_orderkey, o_custkey, 'F', o_totalprice, o_orderdate, o_orderpriority,
           o_clerk, o_shippriority, 'again'
    from orders where o_orderstatus = 'O' order by o_orderkey limit 25
"""

with open_branch() as branch:
    branch.execute("create schema staging")
    branch.execute("create table staging.orders as select * from orders where 1 = 0")
    branch.execute(NEW)
    branch.execute(KNOWN)
    delivered = branch.execute("select count(*) from staging.orders").fetchone()[0]
    print("delivered:", delivered)
