"""PostgreSQL: branches are databases cloned from a base, with roles of their own.

Imported late: everything below needs psycopg.
"""

from proctor_grader.warehouse.postgres.branching import open_adapter
from proctor_grader.warehouse.postgres.execute import execute
from proctor_grader.warehouse.postgres.reading import open_base_reader, open_reader

__all__ = ["execute", "open_adapter", "open_base_reader", "open_reader"]
