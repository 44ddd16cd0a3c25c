"""Hands a fresh branch's objects over, one by one, and opens a shared one for reading.

Object by object, since REASSIGN OWNED would reach shared objects and hand over the base itself.
Done before any agent was there: later the admin runs nothing inside a branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from proctor_grader.warehouse.postgres.session import run_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proctor_grader.warehouse.postgres.session import Session

_BATCH = 500
"""Statements in one transaction: each holds locks, of which a server has a few thousand."""

_SHOWN = 5

# One row per object: rank (schemas first, since a new owner needs CREATE in the schema), the
# verb of ALTER, its name as SQL, its owner. Left out: what follows its table (sequences of
# columns, indexes, row types, arrays), what belongs to an extension or to another object (a
# range's constructors), what only a superuser may own. search_path is pg_catalog, so that
# casts to reg* types spell names in full.
_OBJECTS = r"""
WITH internal AS (
    SELECT classid, objid FROM pg_depend WHERE deptype IN ('e', 'i') AND objsubid = 0
), schema AS (
    SELECT oid, nspname, nspowner, quote_ident(nspname) || '.' AS prefix FROM pg_namespace
    WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%%'
), object AS (
    SELECT 0 AS rank, 'SCHEMA' AS verb, quote_ident(nspname) AS name, nspowner AS owner,
           'pg_namespace'::regclass AS class, oid FROM schema
    UNION ALL
    SELECT 1, CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                           WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'S' THEN 'SEQUENCE'
                           ELSE 'TABLE' END,
           prefix || quote_ident(relname), relowner, 'pg_class', relation.oid
    FROM pg_class AS relation JOIN schema ON schema.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'
      AND NOT (relkind = 'S' AND EXISTS (
          SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
          AND objid = relation.oid AND refobjsubid > 0 AND deptype IN ('a', 'i')))
    UNION ALL
    SELECT 2, 'ROUTINE', routine.oid::regprocedure::text, proowner, 'pg_proc', routine.oid
    FROM pg_proc AS routine JOIN schema ON schema.oid = pronamespace
    UNION ALL
    SELECT 2, CASE typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END,
           prefix || quote_ident(typname), typowner, 'pg_type', type.oid
    FROM pg_type AS type JOIN schema ON schema.oid = typnamespace
    WHERE typtype IN ('e', 'd', 'r') OR (typtype = 'b' AND typcategory <> 'A')
       OR (typtype = 'c' AND (SELECT relkind FROM pg_class WHERE pg_class.oid = typrelid) = 'c')
    UNION ALL
    SELECT 3, 'OPERATOR', operator.oid::regoperator::text, oprowner, 'pg_operator', operator.oid
    FROM pg_operator AS operator JOIN schema ON schema.oid = oprnamespace
    UNION ALL
    SELECT 3, 'COLLATION', prefix || quote_ident(collname), collowner, 'pg_collation', c.oid
    FROM pg_collation AS c JOIN schema ON schema.oid = collnamespace
    UNION ALL
    SELECT 3, 'STATISTICS', prefix || quote_ident(stxname), stxowner, 'pg_statistic_ext', s.oid
    FROM pg_statistic_ext AS s JOIN schema ON schema.oid = stxnamespace
    UNION ALL
    SELECT 3, 'TEXT SEARCH CONFIGURATION', prefix || quote_ident(cfgname), cfgowner,
           'pg_ts_config', c.oid
    FROM pg_ts_config AS c JOIN schema ON schema.oid = cfgnamespace
    UNION ALL
    SELECT 3, 'TEXT SEARCH DICTIONARY', prefix || quote_ident(dictname), dictowner,
           'pg_ts_dict', d.oid
    FROM pg_ts_dict AS d JOIN schema ON schema.oid = dictnamespace
    UNION ALL
    SELECT 3, 'LARGE OBJECT', oid::text, lomowner, 'pg_largeobject', oid
    FROM pg_largeobject_metadata
)
SELECT verb, name, pg_get_userbyid(owner),
       pg_has_role(owner, 'USAGE') OR pg_get_userbyid(owner) = 'pg_database_owner',
       (SELECT rolsuper FROM pg_roles WHERE oid = owner)
FROM object
WHERE NOT EXISTS (SELECT FROM internal WHERE classid = class AND objid = object.oid)
  AND owner <> coalesce((SELECT oid FROM pg_roles WHERE rolname = %(owner)s), 0)
ORDER BY rank, verb, name
"""
_READABLE = r"""
SELECT quote_ident(nspname), CASE WHEN relation.oid IS NULL THEN NULL
                                  ELSE quote_ident(nspname) || '.' || quote_ident(relname) END,
       coalesce(relrowsecurity, false), relkind::text
FROM pg_namespace AS schema
LEFT JOIN pg_class AS relation ON relnamespace = schema.oid
    AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND pg_has_role(relowner, 'USAGE')
WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%%'
  AND pg_has_role(nspowner, 'USAGE')
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """Something in a database that has an owner.

    Attributes:
        kind: the words that ALTER takes for it.
        name: as SQL.
        owner: its role.
        is_reachable: the admin holds the owner's rights, so it may hand it over.
        is_superusers: the owner is a superuser, whose rights nobody can be granted.
    """

    kind: str
    name: str
    owner: str
    is_reachable: bool
    is_superusers: bool

    def __str__(self) -> str:
        """Return what it is for people."""
        return f"{self.kind.lower()} {self.name} of role '{self.owner}'"


def owned_objects(session: Session, except_of: str = "") -> tuple[OwnedObject, ...]:
    """List the objects of the session's database, schemas first.

    Args:
        session: with search_path pg_catalog.
        except_of: a role whose objects are left out.
    """
    rows = session.execute(_OBJECTS.encode(), {"owner": except_of}).fetchall()
    return tuple(OwnedObject(*row) for row in rows)


def out_of_reach(objects: Iterable[OwnedObject], admin: str) -> tuple[str, str] | None:
    """Say which objects the admin can't hand over, and the statements that change it.

    Returns:
        Message and remedy; None if there is no such object.
    """
    stuck = [one for one in objects if not one.is_reachable]
    if not stuck:
        return None
    more = len(stuck) - _SHOWN
    shown = ", ".join(map(str, stuck[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    new_owner = _quoted(admin)
    remedies = [
        f"ALTER {one.kind} {one.name} OWNER TO {new_owner};" for one in stuck if one.is_superusers
    ][:_SHOWN]
    owners = sorted({one.owner for one in stuck if not one.is_superusers})
    remedies += [f"GRANT {_quoted(owner)} TO {new_owner};" for owner in owners[:_SHOWN]]
    return f"the admin can't hand over {shown}", f"run in the base: {' '.join(remedies)}"


def hand_over(session: Session, objects: Sequence[OwnedObject], owner: str) -> None:
    """Make a role the owner of objects, in the order given."""
    to = sql.SQL("ALTER {} {} OWNER TO {}")
    role = sql.Identifier(owner)
    # names come quoted from the server, kinds from the query above
    script = [to.format(_trusted(one.kind), _trusted(one.name), role) for one in objects]
    for start in range(0, len(script), _BATCH):
        run_script(session, script[start : start + _BATCH])


def open_for_reading(session: Session, group: str) -> None:
    """Let a role read everything: the rights, and no row-level security in the way."""
    schemas: dict[str, None] = {}
    relations: list[str] = []
    secured: list[str] = []
    for schema, relation, has_policies, kind in session.execute(_READABLE.encode(), {}).fetchall():
        schemas[schema] = None
        if relation is not None:
            relations.append(relation)
            if has_policies and kind in {"r", "p"}:
                secured.append(relation)
    role = sql.Identifier(group)
    script = [
        sql.SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY").format(_trusted(name))
        for name in secured
    ]
    script += _grants("GRANT USAGE ON SCHEMA {} TO {}", list(schemas), role)
    script += _grants("GRANT SELECT ON {} TO {}", relations, role)
    if script:
        run_script(session, script)


def _grants(template: str, names: list[str], role: sql.Identifier) -> list[sql.Composed]:
    form = sql.SQL(template)
    return [
        form.format(sql.SQL(", ").join(map(_trusted, names[start : start + _BATCH])), role)
        for start in range(0, len(names), _BATCH)
    ]


def _trusted(text: str) -> sql.SQL:
    """SQL that the server wrote itself."""
    return sql.SQL(text)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
