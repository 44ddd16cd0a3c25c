"""Questions to the catalog: relations, columns, which types have an order.

All of it runs with search_path = pg_catalog, so no name an agent made can stand in for one here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader.warehouse.base import Column, Relation, RelationKind

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {
    "r": RelationKind.TABLE,
    "p": RelationKind.TABLE,
    "v": RelationKind.VIEW,
    "m": RelationKind.MATERIALIZED_VIEW,
    "f": RelationKind.FOREIGN_TABLE,
}

SEARCH_PATH = "SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]"

_USER_SCHEMA = r"nspname <> 'information_schema' AND nspname !~ '^pg_'"

RELATIONS = f"""
SELECT nspname, relname, relkind::text, pg_get_userbyid(relowner)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't' AND {_USER_SCHEMA}
"""  # noqa: S608 - a constant above

# the spelling of information_schema.columns, which leaves out materialized views and whatever
# the asking role has no right to
_COLUMNS = """
SELECT attnum::int, attname,
       CASE WHEN type.typtype = 'd' THEN
           CASE WHEN base.typelem <> 0 AND base.typlen = -1 THEN 'ARRAY'
                WHEN base.typnamespace = 'pg_catalog'::regnamespace
                THEN format_type(type.typbasetype, NULL) ELSE 'USER-DEFINED' END
       ELSE
           CASE WHEN type.typelem <> 0 AND type.typlen = -1 THEN 'ARRAY'
                WHEN type.typnamespace = 'pg_catalog'::regnamespace
                THEN format_type(atttypid, NULL) ELSE 'USER-DEFINED' END
       END,
       NOT (attnotnull OR (type.typtype = 'd' AND type.typnotnull)),
       coalesce(root.typname, type.typname) || CASE
           WHEN coalesce(root.typnamespace, type.typnamespace) = 'pg_catalog'::regnamespace
           THEN '' ELSE '.' END,
       format_type(atttypid, atttypmod), type.typcollation <> 0
FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_type AS type ON type.oid = atttypid
LEFT JOIN pg_type AS base ON type.typtype = 'd' AND base.oid = type.typbasetype
LEFT JOIN LATERAL (
    WITH RECURSIVE under AS (
        SELECT type.oid, type.typtype, type.typbasetype, type.typname, type.typnamespace
        WHERE type.typtype = 'd'
        UNION ALL
        SELECT next.oid, next.typtype, next.typbasetype, next.typname, next.typnamespace
        FROM under JOIN pg_type AS next ON under.typtype = 'd' AND next.oid = under.typbasetype
    ) SELECT typname, typnamespace FROM under WHERE typtype <> 'd'
) AS root ON true
WHERE attnum > 0 AND NOT attisdropped
"""
