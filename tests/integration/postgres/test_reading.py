"""What the grader reads is exact, whatever types and names the branch has."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest

from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.warehouse.base import Relation, RelationKind
from proctor_grader.warehouse.postgres.reading import PostgresWarehouse
from tests.integration.postgres.place import Place, Standing, reading, table

TYPES = (
    "CREATE SCHEMA s",
    "CREATE TYPE s.mood AS ENUM ('sad', 'happy')",
    "CREATE TYPE s.pair AS (a integer, b text)",
    "CREATE TYPE s.span AS RANGE (subtype = integer)",
    "CREATE DOMAIN s.positive AS numeric(8,2) NOT NULL CHECK (VALUE > 0)",
    "CREATE DOMAIN s.deep AS s.positive",
    "CREATE DOMAIN s.list AS text[]",
    'CREATE TABLE s."All Types" (c1 smallint, c2 bigint NOT NULL, c3 numeric, c4 numeric(10,3),'
    " c5 real, c6 double precision, c7 money, c8 char(3), c9 varchar(9), c10 text, c11 bytea,"
    " c12 date, c13 time, c14 timetz, c15 timestamp(3), c16 timestamptz, c17 interval, c18 boolean,"
    " c19 uuid, c20 json, c21 jsonb, c22 xml, c23 point, c24 inet, c25 bit(3), c26 int[],"
    " c27 text[][], c28 s.mood, c29 s.pair, c30 s.span, c31 s.positive, c32 s.deep, c33 s.list,"
    ' c34 tsvector, c35 oid, c36 regclass, c37 name, c38 "char", c39 int4range, c40 xid,'
    " c41 int2vector, c42 box, c43 serial, c44 int GENERATED ALWAYS AS IDENTITY,"
    " c45 int GENERATED ALWAYS AS (1) STORED, c46 s.mood[])",
    'ALTER TABLE s."All Types" DROP COLUMN c25',
    'CREATE VIEW s.v AS SELECT * FROM s."All Types"',
    'CREATE MATERIALIZED VIEW s.mv AS SELECT * FROM s."All Types"',
    "CREATE TABLE s.parted (a integer NOT NULL, b text) PARTITION BY LIST (a)",
    "CREATE TABLE s.parted_1 PARTITION OF s.parted FOR VALUES IN (1)",
    "INSERT INTO s.parted VALUES (1, 'x'), (1, 'y')",
)


def test_columns_equal_information_schema_on_every_type(place: Place) -> None:
    query = """
    SELECT ordinal_position, column_name, data_type, is_nullable = 'YES'
    FROM information_schema.columns WHERE table_schema = 's' AND table_name = %s ORDER BY 1
    """
    with reading(place, *TYPES) as reader, place.server.connect(place.name) as session:
        for name in ("All Types", "v", "parted", "parted_1"):
            expected = session.execute(query, [name]).fetchall()
            found = reader.columns(table(name, "s"))
            assert [(c.ordinal, c.name, c.type, c.nullable) for c in found] == expected
        assert reader.columns(table("mv", "s"))[1].type == "bigint"
        numeric = [c.name for c in reader.columns(table("All Types", "s")) if c.is_numeric]
    assert numeric == ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c31", "c32", "c43", "c44", "c45"]


def test_relations_say_kind_and_owner_and_leave_system_schemas_out(place: Place) -> None:
    with reading(
        place,
        *TYPES,
        "CREATE TABLE only_public (a integer)",
        "CREATE TEMP TABLE mine (a integer)",
    ) as reader:
        found = {
            (r.schema, r.name): (r.kind.value, r.is_default_schema) for r in reader.relations()
        }
        owners = {r.owner for r in reader.relations()}
    assert found == {
        ("public", "only_public"): ("table", True),
        ("s", "All Types"): ("table", False),
        ("s", "mv"): ("materialized_view", False),
        ("s", "parted"): ("table", False),
        ("s", "parted_1"): ("table", False),
        ("s", "v"): ("view", False),
    }
    assert owners == {f"{place.name}_agent"}


def test_foreign_tables_are_told_from_tables(place: Place) -> None:
    with place.server.connect(place.base.name) as session:
        session.execute("CREATE EXTENSION file_fdw")
        session.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        session.execute(
            "CREATE FOREIGN TABLE lines (line text) SERVER files OPTIONS (filename '/etc/hostname')"
        )
        session.execute(f"ALTER FOREIGN TABLE lines OWNER TO {place.base.admin}")
    with reading(place) as reader:
        ((one),) = reader.relations()
        assert (one.name, one.kind) == ("lines", RelationKind.FOREIGN_TABLE)
        assert reader.row_count(one) == 1
        assert reader.shapes() == ()
        assert reader.estimated_bytes(one) > 0
        assert reader.behind(one) == ("foreign table public.lines",)  # type: ignore[attr-defined]  # beyond the protocol


def test_partitioned_tables_count_their_partitions(place: Place) -> None:
    with reading(place, *TYPES) as reader:
        counts = {shape.name: shape.row_count for shape in reader.shapes()}
        estimate = reader.estimated_bytes(table("parted", "s"))
    assert counts == {"All Types": 0, "parted": 2, "parted_1": 2}
    assert estimate == 8192 * 2  # a page and its free space or TOAST page


@pytest.mark.parametrize(
    ("column", "values", "total"),
    [
        pytest.param("double precision", "0.1, 0.2, 0.3", "0.6", id="floats-as-written"),
        pytest.param("double precision", "1e16, 1, -1e16", "1", id="floats-in-any-order"),
        pytest.param(
            "double precision", "1e300, 1e-300, -1e300", "0." + "0" * 299 + "1", id="wide"
        ),
        pytest.param("double precision", "1, 'NaN'", "NaN", id="nan"),
        pytest.param("double precision", "1, 'Infinity'", "Infinity", id="infinity"),
        pytest.param("numeric", "'Infinity', '-Infinity'", "NaN", id="infinities"),
        pytest.param("real", "0.1, 0.2", "0.3", id="real"),
        pytest.param("bigint", "9223372036854775807, 1", "9223372036854775808", id="bigint"),
        pytest.param("numeric(5,2)", "1.10, 2.20", "3.30", id="scale-is-kept"),
        pytest.param("money", "'1234.50', '0.25'", "1234.75", id="money"),
        pytest.param("numeric", "1e-20, 1e20", "1" + "0" * 20 + "." + "0" * 19 + "1", id="exact"),
    ],
)
def test_sums(standing: Standing, column: str, values: str, total: str) -> None:
    rows = ", ".join(f"({value})" for value in values.split(", "))
    with standing.reading(
        f"CREATE TABLE sums (a {column})", f"INSERT INTO sums VALUES {rows}"
    ) as reader:
        stats = reader.column_stats(table("sums"), reader.columns(table("sums")))
    standing.place.do(standing.branch.agent_dsn, "DROP TABLE sums")
    assert stats["a"].sum == total


def test_stats_of_very_wide_table(place: Place) -> None:
    columns = ", ".join(f"c{i} integer DEFAULT {i}" for i in range(1200))
    with reading(place, f"CREATE TABLE t ({columns})", "INSERT INTO t DEFAULT VALUES") as reader:
        stats = reader.column_stats(table("t"), reader.columns(table("t")))
    assert len(stats) == 1200
    assert stats["c1199"].sum == "1199"


def test_grain_over_types_without_equality_and_rows_of_nulls(place: Place) -> None:
    with reading(
        place,
        "CREATE TYPE pair AS (a integer, b text)",
        "CREATE TABLE t (j json, p point, r pair, a json[])",
        "INSERT INTO t VALUES ('1', '(1,2)', ROW(NULL, NULL), '{1}'),"
        " ('1', '(1,2)', ROW(1, NULL), '{1}'), ('2', '(1,3)', NULL, '{2}')",
    ) as reader:
        found = {name: reader.grain_counts(table("t"), [name]) for name in ("j", "p", "r", "a")}
        assert reader.grain_counts(table("t"), ["j", "r"]).distinct == 3
    assert {name: (c.rows, c.distinct, c.with_null) for name, c in found.items()} == {
        "j": (3, 2, 0),
        "p": (3, 2, 0),
        "r": (3, 3, 1),  # a row of NULLs is a value; one of them is no value
        "a": (3, 2, 0),
    }


def test_question_that_takes_too_long_is_the_branchs_fault(place: Place, tmp_path: Path) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE VIEW slow AS SELECT a, pg_sleep(60)::text FROM generate_series(1, 2) a",
        "CREATE TABLE t (a integer)",
    )
    reader = PostgresWarehouse({"conninfo": branch.grader_dsn}, timeout_seconds=0.2)
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"took over 0\.2 s") as caught:
        reader.grain_counts(Relation("public", "slow", RelationKind.VIEW), ["pg_sleep"])
    assert caught.value.reason == "QueryTimeout"
    with pytest.raises(QueryError, match=r"took over 0\.2 s"):
        reader.dump(table("slow"), tmp_path / "x.duckdb", limit=None, max_bytes=10**8)
    assert time.monotonic() - started < 20
    assert list(tmp_path.iterdir()) == []
    assert reader.row_count(table("t")) == 0
    reader.close()
    place.adapter.drop(place.name)


def test_materialized_view_without_data_is_the_branchs_fault(place: Place) -> None:
    with (
        reading(place, "CREATE MATERIALIZED VIEW mv AS SELECT 1 AS a WITH NO DATA") as reader,
        pytest.raises(QueryError, match="has not been populated"),
    ):
        reader.row_count(table("mv"))


def test_view_that_writes_or_recurses_forever_is_the_branchs_fault(place: Place) -> None:
    with reading(
        place,
        "CREATE SEQUENCE s",
        "CREATE VIEW v AS SELECT nextval('s') AS a",
        "CREATE FUNCTION f(a integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION f(a integer) RETURNS integer LANGUAGE sql AS 'SELECT f(a)'",
        "CREATE VIEW deep AS SELECT f(1) AS a",
    ) as reader:
        with pytest.raises(QueryError, match="read-only transaction"):
            reader.grain_counts(table("v"), ["a"])
        with pytest.raises(QueryError, match="stack depth"):
            reader.grain_counts(table("deep"), ["a"])


def test_view_over_an_unqualified_name_in_a_function_works_as_for_anybody(place: Place) -> None:
    with reading(
        place,
        "CREATE TABLE orders AS SELECT 1 AS a",
        "CREATE FUNCTION n() RETURNS bigint LANGUAGE plpgsql AS"
        " 'BEGIN RETURN (SELECT count(*) FROM orders); END'",
        "CREATE VIEW v AS SELECT n() AS n",
    ) as reader:
        assert reader.grain_counts(table("v"), ["n"]).rows == 1


def test_session_ended_by_an_operator_is_opened_again(place: Place) -> None:
    with reading(place, "CREATE TABLE t (a integer)") as reader:
        assert reader.row_count(table("t")) == 0
        place.asked(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %(n)s",
            n=f"{place.name}_read",
        )
        assert reader.row_count(table("t")) == 0


def test_what_a_killed_agent_left_running_is_ended(place: Place) -> None:
    branch = place.create()
    place.do(branch.agent_dsn, "CREATE TABLE t AS SELECT 1 AS a")
    left = psycopg.connect(branch.agent_dsn)
    left.execute("TRUNCATE t")  # holds a lock that every reader waits for
    with place.adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 1
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()
    place.do(branch.agent_dsn, "INSERT INTO t VALUES (2)")
    place.adapter.drop(place.name)


def test_reader_of_a_branch_that_is_gone_says_so(place: Place) -> None:
    branch = place.create()
    with place.adapter.open_reader(branch) as reader:
        place.adapter.drop(place.name)
        with pytest.raises(WarehouseError, match=r"authentication failed|does not exist"):
            reader.relations()
    with (
        pytest.raises(WarehouseError, match=r"authentication failed|does not exist"),
        place.adapter.open_reader(branch),
    ):
        pass


def test_closed_reader_answers_nothing(place: Place) -> None:
    with reading(place) as reader:
        reader.close()
        with pytest.raises(WarehouseError, match="closed"):
            reader.relations()


def test_role_without_rights_gets_an_error_not_an_empty_base(place: Place) -> None:
    role = f"{place.base.name}_r"
    place.base.execute(
        "CREATE SCHEMA s", "CREATE TABLE s.t (a integer)", "CREATE TABLE u (a integer)"
    )
    with place.server.connect(place.base.name) as session:
        session.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        session.execute(f"GRANT CONNECT ON DATABASE {place.base.name} TO {role}")
        reader = PostgresWarehouse({"conninfo": place.server.url(place.base.name, role, "x")})
        with pytest.raises(WarehouseError, match="may not read") as caught:
            reader.shapes()
        assert '"s"."t"' in caught.value.message
        assert '"public"."u"' in caught.value.message
        session.execute("GRANT USAGE ON SCHEMA s TO PUBLIC")
        session.execute(f"GRANT SELECT ON s.t, u TO {role}")
        assert [shape.name for shape in reader.shapes()] == ["u", "t"]
        reader.close()
        session.execute(f"DROP OWNED BY {role}")
        session.execute(f"DROP ROLE {role}")
