"""Read units share a branch, but no role: they see the data and nothing of each other."""

from __future__ import annotations

import psycopg
import pytest

from proctor_grader.warehouse.base import Relation, RelationKind
from tests.integration.postgres.place import Place


@pytest.fixture
def place(place: Place) -> Place:
    place.base.execute(
        "CREATE SCHEMA marts",
        "CREATE TABLE marts.t AS SELECT 1 AS a",
        "CREATE VIEW marts.v AS SELECT a FROM marts.t",
        "CREATE MATERIALIZED VIEW marts.mv AS SELECT a FROM marts.t",
        "CREATE SEQUENCE marts.s",
        "CREATE TABLE marts.secured AS SELECT 1 AS a",
        "ALTER TABLE marts.secured ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE marts.secured FORCE ROW LEVEL SECURITY",
    )
    return place


def test_unit_reads_everything(place: Place) -> None:
    unit = place.grant(place.create_shared(), "1")
    with place.session(unit.agent_dsn) as session:
        for name in ("t", "v", "mv", "secured"):
            assert session.execute(f"SELECT a FROM marts.{name}".encode()).fetchall() == [(1,)]
        assert session.execute("SELECT last_value FROM marts.s").fetchall() == [(1,)]
    place.adapter.drop(unit.name)
    place.adapter.drop(place.name)


def test_unit_changes_nothing(place: Place) -> None:
    unit = place.grant(place.create_shared(), "1")
    statements = [
        "INSERT INTO marts.t VALUES (2)",
        "DELETE FROM marts.t",
        "CREATE TABLE x (a integer)",
        "CREATE SCHEMA x",
        "CREATE TEMP TABLE x (a integer)",
        "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION pg_temp.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "SELECT nextval('marts.s')",
        "SELECT setval('marts.s', 9)",
        "REFRESH MATERIALIZED VIEW marts.mv",
        "TRUNCATE marts.t",
        "DROP TABLE marts.t",
        "ALTER TABLE marts.t ADD COLUMN b integer",
        "CREATE EXTENSION citext",
        f'SET ROLE "{place.name}_agent"',
        f'SET SESSION AUTHORIZATION "{place.name}_agent"',
        f'ALTER ROLE "{place.name}_units" SET work_mem = 1',
        "SELECT rolpassword FROM pg_authid",
    ]
    errors = place.tell(unit.agent_dsn, *statements)
    allowed = [text for text, error in zip(statements, errors, strict=True) if not error]
    assert allowed == []
    place.adapter.drop(unit.name)
    place.adapter.drop(place.name)


def test_units_neither_see_nor_end_each_others_sessions(place: Place) -> None:
    shared = place.create_shared()
    one, other = place.grant(shared, "1"), place.grant(shared, "2")
    with place.session(one.agent_dsn) as mine, place.session(other.agent_dsn) as theirs:
        theirs.execute("SELECT 'private question'")
        pid = theirs.info.backend_pid
        seen = mine.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
        assert seen == ("<insufficient privilege>",)
        for function in ("pg_terminate_backend", "pg_cancel_backend"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                mine.execute(f"SELECT {function}(%s)".encode(), [pid])
        assert theirs.execute("SELECT 1").fetchone() == (1,)
    for name in (one.name, other.name, place.name):
        place.adapter.drop(name)
    assert place.left() == []


def test_unit_has_few_connections(place: Place) -> None:
    unit = place.grant(place.create_shared(), "1")
    opened = [psycopg.connect(unit.agent_dsn) for _ in range(8)]
    with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
        psycopg.connect(unit.agent_dsn)
    for session in opened:
        session.close()
    place.adapter.drop(unit.name)
    place.adapter.drop(place.name)


def test_drop_of_a_unit_ends_its_sessions_and_leaves_the_others(place: Place) -> None:
    shared = place.create_shared()
    one, other = place.grant(shared, "1"), place.grant(shared, "2")
    mine, theirs = psycopg.connect(one.agent_dsn), psycopg.connect(other.agent_dsn)
    place.adapter.drop(one.name)
    with pytest.raises(psycopg.OperationalError):
        mine.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(one.agent_dsn)
    assert theirs.execute("SELECT a FROM marts.t").fetchone() == (1,)
    theirs.close()
    mine.close()
    place.adapter.drop(other.name)
    place.adapter.drop(place.name)


def test_fence_of_the_shared_branch_locks_its_units_out(place: Place) -> None:
    shared = place.create_shared()
    unit = place.grant(shared, "1")
    session = psycopg.connect(unit.agent_dsn)
    place.adapter.fence(place.name)
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT 1")
    session.close()
    for dsn in (unit.agent_dsn, shared.grader_dsn):
        with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
            psycopg.connect(dsn)
    place.adapter.drop(place.name)
    place.adapter.drop(unit.name)
    assert place.left() == []


def test_large_object_of_a_unit_does_not_keep_its_role(place: Place) -> None:
    shared = place.create_shared()
    unit = place.grant(shared, "1")
    place.do(
        unit.agent_dsn,
        "SELECT lo_from_bytea(0, 'x')",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
    )
    place.adapter.drop(unit.name)
    assert [record.name for record in place.adapter.list_marked()] == [place.name]
    place.adapter.drop(place.name)
    assert place.left() == []


def test_a_units_leftover_of_that_name_is_replaced(place: Place) -> None:
    shared = place.create_shared()
    old = place.grant(shared, "1")
    new = place.grant(shared, "1")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(old.agent_dsn)
    place.do(new.agent_dsn, "SELECT a FROM marts.t")
    place.adapter.drop(new.name)
    place.adapter.drop(place.name)


def test_grader_reads_the_shared_branch_by_its_own_role(place: Place) -> None:
    shared = place.create_shared()
    unit = place.grant(shared, "1")
    assert unit.grader_dsn == shared.grader_dsn
    with place.adapter.open_reader(unit) as reader:
        for name in ("t", "secured"):
            assert reader.row_count(Relation("marts", name, RelationKind.TABLE)) == 1
        assert [shape.name for shape in reader.shapes()] == ["secured", "t"]
    place.adapter.drop(unit.name)
    place.adapter.drop(place.name)
