from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proctor_grader.errors import UserError, WarehouseError
from proctor_grader.warehouse.base import AdapterOptions
from proctor_grader.warehouse.duckdb.basefile import path_of
from proctor_grader.warehouse.table import engine_of, execute, open_adapter, shown_url
from tests.unit.warehouse.duckdbfile import write_database


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        ("duckdb:///shop.duckdb", "duckdb"),
        ("duckdb:///data/shop.db", "duckdb"),
        ("duckdb:////srv/data/shop.duckdb", "duckdb"),
        ("DuckDB:////srv/shop.duckdb", "duckdb"),
        ("shop.duckdb", "duckdb"),
        ("./a folder/shop.duckdb", "duckdb"),
        ("/srv/postgres.duckdb", "duckdb"),
        ("postgresql://u:p@h/base", "postgres"),
        ("postgres://h:5433/base?sslmode=require", "postgres"),
        ("postgresql:///base?host=/run/postgresql", "postgres"),
        ("postgresql://u:p%40x@[::1]:5432/base", "postgres"),
    ],
)
def test_engine_of(url: str, engine: str) -> None:
    assert engine_of(url) == engine


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("", id="empty"),
        pytest.param("shop.db", id="bare-path-of-another-ending"),
        pytest.param("duckdb://shop.duckdb", id="two-slashes"),
        pytest.param("duckdb:shop.duckdb", id="one-colon"),
        pytest.param("duckdb:///", id="no-file"),
        pytest.param("duckdb:////srv/", id="a-folder"),
        pytest.param(":memory:", id="memory"),
        pytest.param("mysql://u:geheim@h/base", id="another-engine"),
        pytest.param("snowflake://account", id="an-engine-of-later"),
        pytest.param("postgresql://u:geheim@h", id="no-database"),
        pytest.param("postgresql://u:geheim@h/", id="no-database-but-a-slash"),
        pytest.param("postgresql://u:geheim@h:port/base", id="port-is-no-number"),
        pytest.param("postgresql://u:geheim@h:99999/base", id="port-too-large"),
        pytest.param("postgresql://u:geheim@[::1/base", id="bracket-left-open"),
        pytest.param("postgresql://u:geheim@h/ba\nse", id="control-character"),
        pytest.param("host=h password=geheim dbname=base", id="key-value-text"),
    ],
)
def test_a_url_of_no_accepted_form_names_the_forms_and_hides_the_password(url: str) -> None:
    with pytest.raises(UserError) as caught:
        engine_of(url)
    message = str(caught.value)
    assert "duckdb:///" in message
    assert "postgresql://" in message
    assert "geheim" not in message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:geheim@h:5432/base", "postgresql://ada:***@h:5432/base"),
        ("postgresql://ada@h/base", "postgresql://ada@h/base"),
        ("postgresql://:geheim@h/base", "postgresql://:***@h/base"),
        ("postgresql://ada:ge@he/im@h/base", "postgresql://ada:***@h/base"),
        ("postgresql://ada:ge/heim@h/base", "postgresql://ada:***@h/base"),
        ("postgresql://ada:ge?he#im@h/base", "postgresql://ada:***@h/base"),
        ("postgresql://h/base?password=geheim&x=1", "postgresql://h/base?password=***&x=1"),
        ("postgresql://h/base?sslpassword=geheim", "postgresql://h/base?sslpassword=***"),
        ("host=h password='ge heim' dbname=b", "host=h password=*** dbname=b"),
        ("duckdb:////srv/a@b.duckdb", "duckdb:////srv/a@b.duckdb"),
        ("shop.duckdb", "shop.duckdb"),
    ],
)
def test_shown_url(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("duckdb:////srv/shop.duckdb", "/srv/shop.duckdb"),
        ("/srv/x/../shop.duckdb", "/srv/shop.duckdb"),
        ("duckdb:///data/shop.db", "/here/data/shop.db"),
        ("shop.duckdb", "/here/shop.duckdb"),
    ],
)
def test_path_of_a_duckdb_url(url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getcwd", lambda: "/here")
    assert path_of(url) == Path(path)


def test_a_branchs_path_needs_no_ending_to_be_executed_on(tmp_path: Path) -> None:
    path = write_database(tmp_path / "shop.db", "CREATE TABLE t AS SELECT 7 AS a")
    (result,) = execute(str(path), ["SELECT a FROM t"])
    assert result.rows == (("7",),)


def test_executing_on_a_missing_file_makes_none(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="there is no such database"):
        list(execute(str(tmp_path / "gone.duckdb"), ["SELECT 1"]))
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_of_a_malformed_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        open_adapter("shop.sqlite", AdapterOptions("inst-a", tmp_path))


def test_reading_the_table_of_engines_imports_none() -> None:
    program = (
        "import sys, proctor_grader.warehouse.table as t, proctor_grader.warehouse.fingerprint\n"
        "t.engine_of('a.duckdb'); t.engine_of('postgresql://h/b')\n"
        "print(sorted({'duckdb', 'psycopg'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"
