"""The SQL that asks the catalog, and what its rows mean.

All of it runs with search_path = pg_catalog, so that nothing an agent made can stand in for a
name in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from proctor_grader.warehouse.base import Column, RelationKind

KINDS = {
    "r": RelationKind.TABLE,
    "p": RelationKind.TABLE,
    "v": RelationKind.VIEW,
    "m": RelationKind.MATERIALIZED_VIEW,
    "f": RelationKind.FOREIGN_TABLE,
}

# the path of a session nobody has changed: what finds an unqualified name
SEARCH_PATH = "SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]"

RELATIONS = r"""
SELECT nspname, relname, relkind::text, pg_get_userbyid(relowner)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't'
  AND nspname <> 'information_schema' AND nspname !~ '^pg_'
"""

TABLES = r"""
SELECT pg_class.oid, nspname, relname,
       has_schema_privilege(relnamespace, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT')
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p') AND relpersistence <> 't'
  AND nspname <> 'information_schema' AND nspname !~ '^pg_'
"""

# Spelled as information_schema.columns does, which itself leaves out materialized views and all
# that the asking role has no right to.
COLUMNS = """
SELECT attrelid, attnum::int, attname,
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
       atttypid, type.typtype::text, type.typcollation <> 0
FROM pg_attribute JOIN pg_type AS type ON type.oid = atttypid
LEFT JOIN pg_type AS base ON type.typtype = 'd' AND base.oid = type.typbasetype
WHERE attrelid = ANY (%(relations)s) AND attnum > 0 AND NOT attisdropped
ORDER BY attrelid, attnum
"""

DOMAINS = """
WITH RECURSIVE under AS (
    SELECT oid AS domain, typbasetype AS type FROM pg_type
    WHERE oid = ANY (%(domains)s) AND typtype = 'd'
    UNION ALL
    SELECT domain, typbasetype FROM under JOIN pg_type ON oid = type WHERE typtype = 'd'
) SELECT domain, type FROM under JOIN pg_type ON oid = type WHERE typtype <> 'd'
"""

RELATION_ID = """
SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = %(schema)s AND relname = %(name)s
"""

TABLE_BYTES = """
SELECT coalesce((SELECT sum(pg_table_size(relid)) FROM pg_partition_tree(%(relation)s)
                 WHERE isleaf), pg_table_size(%(relation)s))::bigint
"""

# views by their rules, functions by what rules, defaults and policies of all of these use
BEHIND = r"""
WITH RECURSIVE behind (class, object) AS (
    SELECT 'pg_class'::regclass::oid, %(relation)s::oid
    UNION
    SELECT refclassid, refobjid
    FROM behind
    JOIN pg_depend ON (classid, objid) IN (
        SELECT 'pg_rewrite'::regclass::oid, oid FROM pg_rewrite WHERE ev_class = object
        UNION ALL SELECT 'pg_policy'::regclass::oid, oid FROM pg_policy WHERE polrelid = object)
    WHERE class = 'pg_class'::regclass AND deptype = 'n'
      AND refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
)
SELECT CASE relkind WHEN 'm' THEN 'materialized view ' WHEN 'f' THEN 'foreign table '
                    ELSE 'view ' END || object::regclass::text
FROM behind JOIN pg_class ON pg_class.oid = object
WHERE class = 'pg_class'::regclass AND relkind IN ('v', 'm', 'f')
UNION
SELECT 'function ' || object::regprocedure::text
FROM behind JOIN pg_proc ON pg_proc.oid = object
WHERE class = 'pg_proc'::regclass AND pronamespace <> 'pg_catalog'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = object AND deptype = 'e')
ORDER BY 1
"""

# of this branch's agent only; read units' roles are not the reader's to end
END_AGENTS_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_database() || '_agent'
"""

# oids of built-in types never change
INT2, INT4, INT8, FLOAT4, FLOAT8, MONEY, NUMERIC = 21, 23, 20, 700, 701, 790, 1700
TEXT, VARCHAR = 25, 1043
NUMERIC_TYPES = {INT2, INT4, INT8, FLOAT4, FLOAT8, MONEY, NUMERIC}
# bool, bytea, name, oid, date, time, timestamp, timestamptz, uuid
PLAIN_TYPES = {INT2, INT4, INT8, TEXT, VARCHAR, 16, 17, 19, 26, 1082, 1083, 1114, 1184, 2950}
"""With an order, and written alike only if equal."""


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column and what its type allows.

    Attributes:
        type_oid: of the type under all domains.
        is_text: it has a collation.
    """

    column: Column
    type_oid: int
    is_text: bool
