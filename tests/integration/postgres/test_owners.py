"""A private branch belongs to the agent, object by object; the base stays as it was."""

from __future__ import annotations

import psycopg
import pytest

from proctor_grader.errors import BranchError
from tests.integration.postgres.place import Place

BASE = (
    "CREATE SCHEMA marts",
    'CREATE SCHEMA "Odd ""Schema"""',
    "CREATE TYPE marts.mood AS ENUM ('sad', 'happy')",
    "CREATE TYPE marts.pair AS (a integer, b text)",
    "CREATE TYPE marts.span AS RANGE (subtype = integer)",
    "CREATE DOMAIN marts.positive AS integer CHECK (VALUE > 0)",
    'CREATE TABLE "Odd ""Schema"""."Table; DROP"'
    " (id serial, n integer GENERATED ALWAYS AS IDENTITY)",
    "CREATE TABLE marts.orders (id integer PRIMARY KEY, m marts.mood, p marts.pair, s marts.span)",
    "INSERT INTO marts.orders VALUES (1, 'happy', (1, 'x'), '[1,3)')",
    "CREATE TABLE marts.parts (day date, n integer) PARTITION BY RANGE (day)",
    "CREATE TABLE marts.parts_1 PARTITION OF marts.parts DEFAULT",
    "CREATE VIEW marts.v AS SELECT id FROM marts.orders",
    "CREATE MATERIALIZED VIEW marts.mv AS SELECT id FROM marts.orders",
    "CREATE UNIQUE INDEX ON marts.mv (id)",
    "CREATE SEQUENCE marts.free",
    "CREATE FUNCTION marts.f(a integer, b text DEFAULT 'x') RETURNS integer LANGUAGE sql"
    " AS 'SELECT 1'",
    "CREATE FUNCTION marts.secret() RETURNS text LANGUAGE sql SECURITY DEFINER"
    " AS 'SELECT current_user::text'",
    "CREATE PROCEDURE marts.p() LANGUAGE sql AS 'SELECT 1'",
    "CREATE AGGREGATE marts.agg(integer) (SFUNC = int4pl, STYPE = integer, INITCOND = '0')",
    "CREATE FUNCTION marts.eq(a marts.mood, b integer) RETURNS boolean LANGUAGE sql"
    " AS 'SELECT true'",
    "CREATE OPERATOR marts.=== (LEFTARG = marts.mood, RIGHTARG = integer, FUNCTION = marts.eq)",
    'CREATE COLLATION marts.bytes FROM "C"',
    "CREATE STATISTICS marts.stat ON n, day FROM marts.parts",
    "CREATE TEXT SEARCH CONFIGURATION marts.words (COPY = simple)",
    "CREATE TEXT SEARCH DICTIONARY marts.dict (TEMPLATE = simple)",
    "CREATE EXTENSION citext SCHEMA marts",
    "SELECT lo_from_bytea(4711, 'x')",
)


@pytest.fixture
def place(place: Place) -> Place:
    place.base.execute(*BASE)
    return place


def owners(place: Place, database: str) -> set[str]:
    """Owners of everything in a database that belongs to no extension and no superuser."""
    query = """
    SELECT DISTINCT pg_get_userbyid(refobjid) FROM pg_shdepend
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND deptype = 'o' AND refclassid = 'pg_authid'::regclass
      AND NOT (classid = 'pg_extension'::regclass)
      AND NOT EXISTS (SELECT FROM pg_type WHERE oid = objid AND typtype = 'm')
    """
    return set(place.asked(query, database))


def test_everything_belongs_to_the_agent_and_the_base_is_untouched(place: Place) -> None:
    facts = "SELECT (pg_get_userbyid(datdba), datacl)::text FROM pg_database WHERE datname = %(n)s"
    before = place.asked(facts, n=place.base.name)
    owned_before = owners(place, place.base.name)
    place.create()
    assert owners(place, place.name) == {f"{place.name}_agent"}
    assert place.asked(facts, n=place.base.name) == before
    assert owners(place, place.base.name) == owned_before == {place.base.admin}
    place.adapter.drop(place.name)
    assert place.asked(facts, n=place.base.name) == before
    assert place.left() == []


def test_agent_may_do_what_a_build_tool_does(place: Place) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE SCHEMA IF NOT EXISTS staging",
        "CREATE TABLE staging.x AS SELECT * FROM marts.orders",
        "ALTER TABLE staging.x RENAME TO y",
        "DROP VIEW marts.v CASCADE",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY marts.mv",
        "CREATE OR REPLACE FUNCTION marts.f(a integer, b text DEFAULT 'x') RETURNS integer"
        " LANGUAGE sql AS 'SELECT 2'",
        'TRUNCATE "Odd ""Schema"""."Table; DROP" RESTART IDENTITY',
        "INSERT INTO marts.parts VALUES ('2026-01-01', 1)",
        "ALTER TYPE marts.mood ADD VALUE 'angry'",
        "DROP TYPE marts.span CASCADE",
        "DROP SEQUENCE marts.free",
        "CREATE TEMP TABLE t (a integer)",
        "CREATE EXTENSION hstore",
        "ANALYZE marts.orders",
        "DROP SCHEMA staging CASCADE",
        "CREATE TABLE made_in_public (a integer)",
        "DROP SCHEMA public CASCADE",
        "SELECT lo_unlink(4711)",
        "COMMENT ON TABLE marts.orders IS 'x'",
    )
    place.adapter.drop(place.name)


def test_definers_rights_are_the_agents_not_the_admins(place: Place) -> None:
    branch = place.create()
    with place.session(branch.agent_dsn) as session:
        assert session.execute("SELECT marts.secret()").fetchone() == (f"{place.name}_agent",)
    place.adapter.drop(place.name)
    shared = place.create_shared()
    unit = place.grant(shared, "1")
    with place.session(unit.agent_dsn) as session:
        assert session.execute("SELECT marts.secret()").fetchone() == (f"{place.name}_agent",)
    place.adapter.drop(unit.name)
    place.adapter.drop(place.name)


def test_settings_of_the_base_are_copied_but_never_read_only(place: Place) -> None:
    place.base.execute(
        f'ALTER DATABASE {place.base.name} SET search_path = marts, "Odd ""Schema""", public',
        f"ALTER DATABASE {place.base.name} SET work_mem = '5MB'",
        f"ALTER DATABASE {place.base.name} SET default_transaction_read_only = on",
    )
    branch = place.create()
    assert branch.notes == ()
    with place.session(branch.agent_dsn) as session:
        shown = [session.execute(f"SHOW {name}").fetchone() for name in ("search_path", "work_mem")]
        assert shown == [('marts, "Odd ""Schema""", public',), ("5MB",)]
        session.execute("CREATE TABLE lands_in_marts (a integer)")
    with place.adapter.open_reader(branch) as reader:
        found = {r.name: (r.schema, r.is_default_schema) for r in reader.relations()}
    assert found["lands_in_marts"] == ("marts", True)
    assert found["Table; DROP"] == ('Odd "Schema"', True)
    place.adapter.drop(place.name)


def test_setting_that_only_a_superuser_may_make_is_noted(place: Place) -> None:
    with place.server.connect() as session:
        session.execute(f"ALTER DATABASE {place.base.name} SET log_statement = 'all'")
    branch = place.create()
    (note,) = branch.notes
    assert note.startswith("the base's setting 'log_statement' was not copied: ")
    place.adapter.drop(place.name)


@pytest.mark.parametrize(
    ("made", "message", "remedy"),
    [
        pytest.param(
            'CREATE TABLE marts."S; t" (a integer)',
            "the admin can't hand over table marts.\"S; t\" of role 'postgres'",
            'ALTER TABLE marts."S; t" OWNER TO',
            id="a-superusers-table",
        ),
        pytest.param(
            "CREATE FUNCTION marts.su(a integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "routine marts.su(integer) of role 'postgres'",
            "ALTER ROUTINE marts.su(integer) OWNER TO",
            id="a-superusers-function",
        ),
        pytest.param(
            "CREATE SCHEMA su", "schema su of role", "ALTER SCHEMA su OWNER TO", id="schema"
        ),
    ],
)
def test_objects_of_a_superuser_are_named_with_the_statement(
    place: Place, made: str, message: str, remedy: str
) -> None:
    with place.server.connect(place.base.name) as session:
        session.execute(made.encode())
    with pytest.raises(BranchError) as caught:
        place.create()
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert place.left() == []
    (shortfall,) = [s for s in place.adapter.privileges() if s.fatal]
    assert message in shortfall.message
    assert remedy in shortfall.remedy
    with place.server.connect(place.base.name) as session:
        session.execute(shortfall.remedy.removeprefix("run in the base: ").encode())
    assert [s for s in place.adapter.privileges() if s.fatal] == []
    place.create()
    place.adapter.drop(place.name)


def test_objects_of_another_role_need_its_rights(place: Place) -> None:
    other = f"{place.base.name}_other"
    with place.server.connect(place.base.name) as session:
        session.execute(f"CREATE ROLE {other}")
        session.execute(f"GRANT {other} TO {place.base.admin}")
        session.execute("CREATE TABLE marts.theirs (a integer)")
        session.execute(f"ALTER TABLE marts.theirs OWNER TO {other}")
        session.execute(f"REVOKE {other} FROM {place.base.admin}")
    with pytest.raises(BranchError, match=f"table marts.theirs of role '{other}'") as caught:
        place.create()
    assert caught.value.remedy.endswith(f'GRANT "{other}" TO "{place.base.admin}";')
    with place.server.connect() as session:
        session.execute(caught.value.remedy.removeprefix("run in the base: ").encode())
    place.create()
    assert owners(place, place.name) == {f"{place.name}_agent"}
    place.adapter.drop(place.name)


def test_base_of_many_objects_is_handed_over_in_batches(place: Place) -> None:
    with place.base.connect() as session:
        session.execute(
            "DO $$ BEGIN FOR i IN 1..620 LOOP EXECUTE format('CREATE TABLE t%s (a int)', i);"
            " END LOOP; END $$"
        )
    branch = place.create()
    assert owners(place, place.name) == {f"{place.name}_agent"}
    with place.adapter.open_reader(branch) as reader:
        assert sum(shape.name.startswith("t") for shape in reader.shapes()) >= 620
    place.adapter.drop(place.name)


def test_reader_may_not_write(place: Place) -> None:
    branch = place.create()
    errors = place.tell(
        branch.grader_dsn,
        "INSERT INTO marts.parts VALUES (now(), 1)",
        "CREATE TABLE x (a integer)",
        "CREATE TEMP TABLE x (a integer)",
    )
    assert all("read-only transaction" in error for error in errors)
    place.adapter.drop(place.name)


def test_nobody_else_may_connect(place: Place) -> None:
    branch = place.create()
    stranger = place.server.make_base()
    try:
        with (
            pytest.raises(psycopg.OperationalError, match="permission denied for database"),
            stranger.connect(branch.name),
        ):
            pass
    finally:
        place.server.drop_base(stranger)
    place.adapter.drop(place.name)
