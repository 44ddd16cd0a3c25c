"""Captures hold what the branch held, byte for byte and in order."""

from __future__ import annotations

from pathlib import Path

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor_grader.errors import QueryError
from tests.integration.postgres.place import Place, Standing, reading, table


def rows_of(path: Path) -> list[tuple[str | None, ...]]:
    with duckdb.connect(str(path), read_only=True) as file:
        return file.execute("SELECT * FROM capture").fetchall()


def test_sample_is_in_order_whatever_the_types(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with reading(
        place,
        "CREATE TYPE mood AS ENUM ('zest', 'anger')",
        "CREATE TABLE t (m mood, j json, n numeric, a text[])",
        "INSERT INTO t VALUES ('anger', '1', 1, '{a}'), ('zest', '10', 1.0, '{a}'),"
        " ('zest', '10', 1, '{a}'), ('zest', '9', 1, '{a}'), (NULL, '1', 1, '{a}'),"
        " ('zest', '10', NULL, '{é}'), ('zest', '10', NULL, '{Z}')",
    ) as reader:
        assert reader.dump(table("t"), path, limit=50, max_bytes=10**8) == 7
    assert rows_of(path) == [
        ("zest", "10", "1", "{a}"),
        ("zest", "10", "1.0", "{a}"),
        ("zest", "10", None, "{Z}"),
        ("zest", "10", None, "{é}"),
        ("zest", "9", "1", "{a}"),
        ("anger", "1", "1", "{a}"),
        (None, "1", "1", "{a}"),
    ]


def test_values_are_written_in_one_way_whatever_role_and_database_are_set_to(
    place: Place, tmp_path: Path
) -> None:
    name = place.base.name
    place.base.execute(
        f"ALTER DATABASE {name} SET datestyle = 'German'",
        f"ALTER DATABASE {name} SET timezone = 'Asia/Tokyo'",
        f"ALTER DATABASE {name} SET intervalstyle = 'iso_8601'",
        f"ALTER DATABASE {name} SET bytea_output = 'escape'",
        f"ALTER DATABASE {name} SET extra_float_digits = 0",
        f"ALTER DATABASE {name} SET row_security = on",
    )
    path = tmp_path / "t.duckdb"
    with reading(
        place,
        "CREATE TABLE t AS SELECT timestamptz '2026-01-02 03:04:05+00' AS ts,"
        " date '2026-01-02' AS d, interval '1 day 02:03' AS i, '\\xdead'::bytea AS b,"
        " 0.1::float8 + 0.2 AS f, true AS t,"
        " '{1,NULL}'::int[] AS a, 'NaN'::float8 AS n, '{\"a\": 1}'::json AS j, 'ab'::char(4) AS c",
    ) as reader:
        reader.dump(table("t"), path, limit=None, max_bytes=10**8)
    assert rows_of(path) == [
        (
            "2026-01-02 03:04:05+00",
            "2026-01-02",
            "1 day 02:03:00",
            "\\xdead",
            "0.30000000000000004",
            "t",
            "{1,NULL}",
            "NaN",
            '{"a": 1}',
            "ab  ",
        )
    ]


def test_columns_that_differ_in_case_only_are_all_captured(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with reading(
        place, 'CREATE TABLE t AS SELECT 1 AS a, 2 AS "A", 3 AS "a_2", 4 AS "É", 5 AS "é"'
    ) as reader:
        reader.dump(table("t"), path, limit=None, max_bytes=10**8)
    with duckdb.connect(str(path), read_only=True) as file:
        names = [row[0] for row in file.execute("DESCRIBE capture").fetchall()]
    assert names[:3] == ["a", "A_3", "a_2"]
    assert rows_of(path) == [("1", "2", "3", "4", "5")]


def test_table_without_columns_is_counted_and_not_captured(place: Place, tmp_path: Path) -> None:
    with reading(place, "CREATE TABLE t ()", "INSERT INTO t DEFAULT VALUES") as reader:
        assert reader.row_count(table("t")) == 1
        assert reader.column_stats(table("t"), []) == {}
        with pytest.raises(QueryError, match="without columns"):
            reader.dump(table("t"), tmp_path / "t.duckdb", limit=5, max_bytes=10**8)
    assert list(tmp_path.iterdir()) == []


def test_dump_never_replaces_a_file(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    path.write_text("mine")
    with reading(place, "CREATE TABLE t (a integer)") as reader, pytest.raises(FileExistsError):
        reader.dump(table("t"), path, limit=None, max_bytes=10**8)
    assert path.read_text() == "mine"


def test_dump_of_values_longer_than_a_piece(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with reading(
        place,
        "CREATE TABLE t AS SELECT a, repeat(a::text, 5000000) AS s FROM generate_series(1, 3) a",
    ) as reader:
        assert reader.dump(table("t"), path, limit=None, max_bytes=10**8) == 3
    assert [(row[0], row[1] == row[0] * 5_000_000) for row in rows_of(path)] == [
        ("1", True),
        ("2", True),
        ("3", True),
    ]


TEXT = (
    st.none()
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
    | st.text("\r\n\",\\N \t'é", max_size=8)
)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(rows=[("\\N", None), ("", "\r\n"), (None, "\\N"), ('"', "NULL")])
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=120))
def test_any_text_survives_the_capture(
    standing: Standing,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str | None, str | None]],
) -> None:
    place, branch = standing.place, standing.branch
    with psycopg.connect(branch.agent_dsn) as session:
        session.execute("DROP TABLE IF EXISTS t")
        session.execute("CREATE TABLE t (i integer, a text, b text)")
        session.cursor().executemany(
            "INSERT INTO t VALUES (%s, %s, %s)", [(i, *row) for i, row in enumerate(rows)]
        )
    path = tmp_path_factory.mktemp("capture") / "t.duckdb"
    with place.adapter.open_reader(branch) as reader:
        assert reader.dump(table("t"), path, limit=len(rows), max_bytes=10**8) == len(rows)
    assert rows_of(path) == [(str(i), *row) for i, row in enumerate(rows)]
