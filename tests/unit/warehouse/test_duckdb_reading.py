from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proctor_grader.errors import QueryError, WarehouseError
from proctor_grader.warehouse.base import AdapterOptions, GrainCounts
from proctor_grader.warehouse.duckdb import DuckDBWarehouse, open_adapter, open_base_reader
from proctor_grader.warehouse.duckdb.faults import OUT_OF_MEMORY, QUERY_TIMEOUT
from tests.unit.warehouse.conftest import Shop
from tests.unit.warehouse.duckdbfile import MARK, table, view, write_database

EVERY_TYPE = """
CREATE TABLE every (
    id INTEGER PRIMARY KEY, a TINYINT NOT NULL, b UBIGINT, c HUGEINT, d DECIMAL(38,10), e DOUBLE,
    f REAL, g VARCHAR, h BLOB, i BOOLEAN, j DATE, k TIME, l TIMESTAMP, m TIMESTAMPTZ, n INTERVAL,
    o UUID, p INTEGER[], q INTEGER[3], r STRUCT("a b" INTEGER, c VARCHAR), s MAP(VARCHAR, INTEGER),
    t ENUM ('z', 'a''b'), u UNION(n INTEGER, s VARCHAR), v JSON, w BIT, x TIMESTAMP_NS, y BIGNUM,
    "Mixed ""Case"".dot" VARCHAR UNIQUE, "select" INTEGER, gen AS (id + 1)
)"""
ODD = 'a "b".C\n;--'


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as file:
        return file.execute("FROM capture").fetchall()


def test_columns_are_those_of_the_information_schema(shop: Shop) -> None:
    with shop.reader(EVERY_TYPE) as reader:
        columns = reader.columns(table("every"))
        (shape,) = reader.shapes()
    with duckdb.connect() as connection:
        connection.execute(EVERY_TYPE)
        expected = connection.execute(
            "SELECT ordinal_position, column_name, data_type, is_nullable"
            " FROM information_schema.columns WHERE table_name = 'every' ORDER BY ordinal_position"
        ).fetchall()
    found = [(c.ordinal, c.name, c.type, "YES" if c.nullable else "NO") for c in columns]
    assert found == expected
    assert shape.columns == columns
    assert {c.name for c in columns if c.is_numeric} == {
        *("id", "a", "b", "c", "d", "e", "f", "y", "select", "gen")
    }


def test_every_type_can_be_counted_and_dumped(shop: Shop, tmp_path: Path) -> None:
    row = (
        "INSERT INTO every VALUES (1, 2, 3, 4, 5.5, 0.1, 0.5, 'x', 'y', true, '2020-02-03',"
        " '01:02:03', '2020-02-03 04:05:06', '2020-02-03 04:05:06+02', INTERVAL 1 DAY,"
        " '00000000-0000-0000-0000-000000000001', [1, 2], [1, 2, 3], {'a b': 1, 'c': 'x'},"
        " MAP {'k': 1}, 'z', 1, '{\"a\": 1}', '101', '2020-02-03 04:05:06', 7, 'm', 9)"
    )
    with shop.reader(EVERY_TYPE, row) as reader:
        columns = reader.columns(table("every"))
        stats = reader.column_stats(table("every"), columns)
        names = [column.name for column in columns]
        assert reader.grain_counts(table("every"), names) == GrainCounts(1, 1, 0)
        for limit in (None, 10):
            path = tmp_path / f"{limit}.duckdb"
            assert reader.dump(table("every"), path, limit=limit, max_bytes=10**7) == 1
            (dumped,) = rows_of(path)
            shown = dict(zip(names, dumped, strict=True))
            assert shown["m"] == "2020-02-03 02:05:06+00"
            assert shown["r"] == "{'a b': 1, 'c': x}"
            assert shown["gen"] == "2"
    assert {name: each.sum for name, each in stats.items() if each.sum} == {
        **{"id": "1", "a": "2", "b": "3", "c": "4", "d": "5.5000000000", "e": "0.1", "f": "0.5"},
        **{"y": "7", "select": "9", "gen": "2"},
    }


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_text_of_a_time_is_the_same_wherever_it_is_graded(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    with shop.reader("CREATE TABLE t AS SELECT '2020-01-01 00:00:00+00'::TIMESTAMPTZ AS a") as r:
        r.dump(table("t"), tmp_path / "t.duckdb", limit=None, max_bytes=10**6)
    assert rows_of(tmp_path / "t.duckdb") == [("2020-01-01 00:00:00+00",)]


def test_macros_types_and_schemas_of_the_branch_fool_nobody(shop: Shop, tmp_path: Path) -> None:
    names = ["sum", "abs", "isfinite", "encode", "strlen", "duckdb_columns", "replace"]
    statements = [
        "CREATE TABLE t (a INTEGER, b DOUBLE, c VARCHAR)",
        "INSERT INTO t VALUES (1, 1.5, 'a'), (2, 2.5, 'b')",
        "CREATE MACRO count(x) AS 99",
        *(f"CREATE MACRO {name}(x) AS 77" for name in names),
        "CREATE MACRO duckdb_tables() AS TABLE SELECT 'x' AS schema_name",
        "CREATE SCHEMA system",
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.shop.t AS SELECT 1 AS a FROM range(50)",
        "CREATE TYPE varchar2 AS INTEGER",
    ]
    with shop.reader(*statements) as reader:
        assert reader.row_count(table("t")) == 2
        assert [c.name for c in reader.columns(table("t"))] == ["a", "b", "c"]
        stats = reader.column_stats(table("t"), reader.columns(table("t")))
        assert [(s.nulls, s.sum) for s in stats.values()] == [(0, "3"), (0, "4"), (0, None)]
        assert reader.grain_counts(table("t"), ["c"]) == GrainCounts(2, 2, 0)
        assert reader.dump(table("t"), tmp_path / "t", limit=1, max_bytes=10**6) == 1
        assert 0 < reader.estimated_bytes(table("t")) < 100
        assert {str(r) for r in reader.relations()} == {"main.t", "shop.t"}


def test_macros_fool_nobody_where_the_branch_is_the_search_path() -> None:
    with duckdb.connect() as connection:
        for statement in ("CREATE TABLE t AS SELECT 1 AS a", "CREATE MACRO sum(x) AS 77"):
            connection.execute(statement)
        connection.execute("CREATE MACRO count(x) AS 99")
        reader = DuckDBWarehouse(connection, "memory")
        assert reader.row_count(table("t")) == 1
        stats = reader.column_stats(table("t"), reader.columns(table("t")))
        assert (stats["a"].nulls, stats["a"].sum) == (0, "1")


def test_names_of_any_kind_are_only_ever_names(shop: Shop, tmp_path: Path) -> None:
    quoted = ODD.replace('"', '""')
    with shop.reader(
        f'CREATE SCHEMA "{quoted}"',
        f'CREATE TABLE "{quoted}"."{quoted}" ("{quoted}" INTEGER, r STRUCT(a INTEGER), a INTEGER)',
        f'INSERT INTO "{quoted}"."{quoted}" VALUES (5, {{\'a\': 7}}, 3)',
    ) as reader:
        (relation,) = reader.relations()
        assert (relation.schema, relation.name) == (ODD, ODD)
        columns = reader.columns(relation)
        assert [c.name for c in columns] == [ODD, "r", "a"]
        stats = reader.column_stats(relation, columns)
        assert {name: each.sum for name, each in stats.items()} == {ODD: "5", "r": None, "a": "3"}
        assert reader.grain_counts(relation, [ODD, "r", "a"]) == GrainCounts(1, 1, 0)
        assert reader.dump(relation, tmp_path / "x", limit=5, max_bytes=10**6) == 1
        assert [shape.name for shape in reader.shapes()] == [ODD]
    assert rows_of(tmp_path / "x") == [("5", "{'a': 7}", "3")]


@pytest.mark.parametrize(
    "name",
    ["memory", "system", "temp", "main", "information_schema", "pg_catalog", "my.data", "Sh op's"],
)
def test_a_base_of_any_name_keeps_its_catalogs_name(tmp_path: Path, name: str) -> None:
    base = write_database(tmp_path / f"{name}.duckdb", "CREATE TABLE t AS SELECT 1 AS a")
    with duckdb.connect(str(base)) as connection:
        catalog = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f'CREATE VIEW v AS SELECT * FROM "{catalog}".main.t')
    with open_base_reader(str(base)) as reader:
        assert reader.row_count(view("v")) == 1
    adapter = open_adapter(str(base), AdapterOptions("inst-a", tmp_path / "branches"))
    for attempt in ("a", "b"):
        branch = adapter.create(f"eval-{attempt}", MARK)
        with adapter.open_reader(branch) as reader:
            assert reader.row_count(view("v")) == 1
    adapter.close()


def test_relations_are_of_the_main_catalog_only(shop: Shop) -> None:
    with shop.reader(
        "CREATE TABLE t (a INTEGER)",
        "CREATE TEMP TABLE temporary (a INTEGER)",
        "ATTACH ':memory:' AS other",
        "CREATE TABLE other.main.elsewhere (a INTEGER)",
        "CREATE TEMP VIEW w AS SELECT 1 AS a",
    ) as reader:
        assert [str(r) for r in reader.relations()] == ["main.t"]


def test_a_broken_view_fails_itself_only(shop: Shop) -> None:
    with shop.reader(
        "CREATE TABLE gone AS SELECT 1 AS a",
        "CREATE VIEW broken AS SELECT * FROM gone",
        "DROP TABLE gone",
        "CREATE TABLE t AS SELECT 1 AS b",
    ) as reader:
        for ask in (reader.columns, reader.row_count, reader.estimated_bytes):
            with pytest.raises(QueryError, match="gone does not exist") as caught:
                ask(view("broken"))
            assert "\n\n" not in caught.value.message
        assert [str(r) for r in reader.relations()] == ["main.broken", "main.t"]
        assert [s.name for s in reader.shapes()] == ["t"]


def test_columns_of_a_view_are_as_they_stand_now(shop: Shop) -> None:
    with (
        shop.reader(
            "CREATE TABLE t AS SELECT 1 AS a",
            "CREATE VIEW v AS SELECT a FROM t",
            "CREATE OR REPLACE TABLE t AS SELECT 'x' AS b",
        ) as reader,
        pytest.raises(QueryError),
    ):
        reader.columns(view("v"))


@pytest.mark.parametrize(
    "body",
    [
        "SELECT * FROM read_csv('/etc/passwd', header = false)",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT nextval('s') AS a",
        "SELECT CAST('x' AS INTEGER) AS a",
        "SELECT error('No space left on device') AS a",
        "SELECT error('Could not set lock on file') AS a",
        "SELECT error('Permission denied') AS a",
    ],
)
def test_views_that_reach_out_or_fail_are_the_branchs_fault(shop: Shop, body: str) -> None:
    with (
        shop.reader("CREATE SEQUENCE s", f"CREATE VIEW v AS {body}") as reader,
        pytest.raises(QueryError),
    ):
        reader.grain_counts(view("v"), [column.name for column in reader.columns(view("v"))])


def test_a_view_sees_no_variable_of_the_grader(shop: Shop) -> None:
    secret = duckdb.connect().execute("SELECT 'gold' AS a").fetchall()
    assert secret
    with shop.reader("CREATE TABLE secret AS SELECT 1 AS a", "CREATE VIEW v AS FROM secret") as r:
        assert r.row_count(view("v")) == 1
    with (
        shop.reader(
            "CREATE TABLE secret AS SELECT 1 AS a",
            "CREATE VIEW v AS FROM secret",
            "DROP TABLE secret",
        ) as r,
        pytest.raises(QueryError),
    ):
        r.row_count(view("v"))


@pytest.mark.parametrize(
    "statement",
    [
        "SET memory_limit = '8GB'",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "COPY (SELECT 1) TO '/tmp/proctor-must-not-be.csv'",
        "INSTALL httpfs",
        "ATTACH '/tmp/proctor-must-not-be.duckdb' AS x",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "INSERT INTO shop.main.t VALUES (1)",
    ],
)
def test_a_grading_instance_is_locked(shop: Shop, statement: str) -> None:
    with shop.reader("CREATE TABLE t (a INTEGER)") as reader:
        connection = reader._connection
        assert connection is not None
        with pytest.raises(duckdb.Error):
            connection.execute(statement)


def test_a_query_over_its_time_is_the_branchs_fault_and_the_next_one_runs() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE VIEW slow AS SELECT count(*) AS a FROM range(10000000000000)")
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        reader = DuckDBWarehouse(connection, "memory", timeout_seconds=0.2)
        with pytest.raises(QueryError, match=r"took over 0\.2 s") as caught:
            reader.row_count(view("slow"))
        assert caught.value.reason == QUERY_TIMEOUT
        assert reader.row_count(table("t")) == 1


def test_ctrl_c_ends_a_query_and_is_nobodys_fault() -> None:
    program = (
        "import os, signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import duckdb\n"
        "from proctor_grader.warehouse.base import Relation, RelationKind\n"
        "from proctor_grader.warehouse.duckdb import DuckDBWarehouse\n"
        "connection = duckdb.connect(config={'threads': 1})\n"
        "connection.execute('CREATE VIEW v AS SELECT count(*) AS a FROM range(10000000000000)')\n"
        "reader = DuckDBWarehouse(connection, 'memory')\n"
        "try:\n"
        "    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()\n"
        "    reader.row_count(Relation('main', 'v', RelationKind.VIEW))\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout == "stopped\n"


def test_a_query_over_memory_is_no_fault_of_the_branch(shop: Shop) -> None:
    with (
        shop.reader("CREATE VIEW v AS SELECT list(range) AS a FROM range(1000000000)") as reader,
        pytest.raises(WarehouseError) as caught,
    ):
        reader.grain_counts(view("v"), ["a"])
    assert caught.value.reason == OUT_OF_MEMORY


def test_text_is_ordered_by_bytes_whatever_its_collation(shop: Shop, tmp_path: Path) -> None:
    with shop.reader(
        "CREATE TABLE t (a VARCHAR COLLATE NOCASE)",
        "INSERT INTO t VALUES ('b'), ('a'), ('B'), (NULL), ('é'), ('')",
    ) as reader:
        reader.dump(table("t"), tmp_path / "t", limit=10, max_bytes=10**6)
    assert rows_of(tmp_path / "t") == [("",), ("B",), ("a",), ("b",), ("é",), (None,)]


def test_an_enum_is_ordered_as_it_was_declared(shop: Shop, tmp_path: Path) -> None:
    with shop.reader(
        "CREATE TYPE mood AS ENUM ('z', 'a')",
        "CREATE TABLE t AS SELECT unnest(['a', 'z'])::mood AS m",
    ) as reader:
        reader.dump(table("t"), tmp_path / "t", limit=10, max_bytes=10**6)
    assert rows_of(tmp_path / "t") == [("z",), ("a",)]


def test_a_dump_never_overwrites(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mine")
    with shop.reader("CREATE TABLE t AS SELECT 1 AS a") as reader:
        with pytest.raises(FileExistsError):
            reader.dump(table("t"), tmp_path / "t", limit=None, max_bytes=10**6)
        assert reader.row_count(table("t")) == 1
    assert (tmp_path / "t").read_text() == "mine"


def test_a_dump_that_has_no_place_is_told(shop: Shop, tmp_path: Path) -> None:
    with shop.reader("CREATE TABLE t AS SELECT 1 AS a") as reader:
        with pytest.raises(WarehouseError, match="can't be written"):
            reader.dump(table("t"), tmp_path / "none" / "t", limit=None, max_bytes=10**6)
        assert reader.dump(table("t"), tmp_path / "t", limit=None, max_bytes=10**6) == 1


def test_a_capture_is_readable_by_older_engines_and_small(shop: Shop, tmp_path: Path) -> None:
    with shop.reader("CREATE TABLE t AS SELECT 1 AS a") as reader:
        reader.dump(table("t"), tmp_path / "t", limit=None, max_bytes=10**6)
    written = (tmp_path / "t").read_bytes()
    assert int.from_bytes(written[12:20], "little") == 64
    assert len(written) < 100_000


def test_a_closed_reader_says_so(connection: duckdb.DuckDBPyConnection) -> None:
    reader = DuckDBWarehouse(connection, "memory")
    reader.close()
    reader.close()
    with pytest.raises(WarehouseError, match="closed"):
        reader.relations()
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_counts_of_many_tables(connection: duckdb.DuckDBPyConnection) -> None:
    for place in range(450):
        connection.execute(f"CREATE TABLE t{place:04} AS SELECT * FROM range({place})")
    shapes = DuckDBWarehouse(connection, "memory").shapes()
    assert [shape.row_count for shape in shapes] == list(range(450))
    assert shapes[7].name == "t0007"
