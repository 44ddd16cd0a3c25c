"""Playing one recorded entry in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proctor_grader import contract
from proctor_grader.agents.replay import ReplayEntry, is_inside, play

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An attempt's folder with a branch in it."""
    for name in ("work", "output", "branch"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def dsn(place: Path) -> str:
    """A DuckDB branch with one table of three rows."""
    path = place / "branch" / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("create table orders as select * from range(3) t(id)")
    return str(path)


def environment(place: Path, dsn: str = "") -> dict[str, str]:
    named = {contract.WORKDIR: str(place / "work"), contract.OUTPUT: str(place / "output")}
    return named | ({contract.WAREHOUSE_DSN: dsn} if dsn else {})


def answer(place: Path) -> str | None:
    path = place / "output" / contract.ANSWER_FILE
    return path.read_text("utf-8") if path.exists() else None


def events(place: Path) -> list[dict[str, Any]]:
    text = (place / "output" / contract.EVENTS_FILE).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_files_and_answer_are_written_as_recorded(place: Path) -> None:
    entry = ReplayEntry("4 €\r\n", files={"models/a.sql": "select\n", "b": ""}, exit=3)

    assert play(entry, environment(place)) == 3
    assert (place / "output/answer.txt").read_bytes() == "4 €\r\n".encode()
    assert (place / "work/models/a.sql").read_bytes() == b"select\n"
    assert (place / "work/b").read_bytes() == b""


def test_an_entry_without_an_answer_leaves_none(place: Path) -> None:
    assert play(ReplayEntry(), environment(place)) == 0
    assert answer(place) is None


def test_an_empty_answer_is_one(place: Path) -> None:
    play(ReplayEntry(""), environment(place))

    assert answer(place) == ""


def test_statements_run_on_the_branch_and_are_told_as_events(place: Path, dsn: str) -> None:
    statements = ("create table big as select * from orders where id > 0", "select id from big")

    assert play(ReplayEntry("2", statements), environment(place, dsn)) == 0

    first, second = events(place)
    assert [first["input"]["sql"], second["input"]["sql"]] == list(statements)
    assert second["tool"] == "sql"
    assert second["result"]["columns"] == ["id"]
    assert second["result"]["rows"] == [["1"], ["2"]]
    assert second["is_error"] is False
    assert second["ts"] >= first["ts"]
    with duckdb.connect(dsn, read_only=True) as connection:
        assert connection.execute("select count(*) from big").fetchone() == (2,)


def test_a_failing_statement_ends_it_without_an_answer(place: Path, dsn: str) -> None:
    entry = ReplayEntry(
        "2", ("select 1", "select nonsense", "create table never as select 1"), {"file": "x"}
    )

    assert play(entry, environment(place, dsn)) == 1

    assert answer(place) is None
    assert not (place / "work/file").exists()
    assert [event["is_error"] for event in events(place)] == [False, True]
    assert "nonsense" in events(place)[1]["result"]["error"]


def test_statements_without_a_warehouse_end_it(place: Path) -> None:
    assert play(ReplayEntry("2", ("select 1",)), environment(place)) == 1
    assert answer(place) is None


def test_no_file_leaves_the_working_directory_through_a_link(place: Path, tmp_path: Path) -> None:
    (place / "work/link").symlink_to(place / "branch")
    (place / "work/file").symlink_to(place / "branch/file")

    assert play(ReplayEntry("x", files={"link/new": "x"}), environment(place)) == 2
    assert play(ReplayEntry("x", files={"file": "x"}), environment(place)) == 2
    assert list((place / "branch").iterdir()) == []
    assert answer(place) is None


def test_a_file_where_a_folder_is_ends_it(place: Path) -> None:
    (place / "work/models").mkdir()

    assert play(ReplayEntry("x", files={"models": "x"}), environment(place)) == 2


@pytest.mark.parametrize("name", ["a", "a/b", "./a", "..a", "a..b/c", " "])
def test_a_path_below_is_inside(name: str) -> None:
    assert is_inside(name)


@pytest.mark.parametrize("name", ["", ".", "/", "/a", "..", "../a", "a/../b", "a/..", "a\0b"])
def test_a_path_elsewhere_is_not_inside(name: str) -> None:
    assert not is_inside(name)


def run(place: Path, *arguments: str, dsn: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "proctor_grader.agents.replay", *arguments],
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT / "grader/src")} | environment(place, dsn),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_process_plays_its_file_and_ends_with_its_code(place: Path) -> None:
    path = place / "entry.json"
    path.write_text(json.dumps(ReplayEntry("42", exit=7).to_json()))

    done = run(place, str(path))

    assert (done.returncode, done.stderr) == (7, "")
    assert answer(place) == "42"


def test_the_process_prints_its_statements(place: Path, dsn: str) -> None:
    path = place / "entry.json"
    path.write_text(json.dumps(ReplayEntry("42", ("select 1",)).to_json()))

    done = run(place, str(path), dsn=dsn)

    assert done.returncode == 0, done.stderr
    assert "select 1\n" in done.stdout


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"answer": 1}'])
def test_a_broken_entry_is_told_not_raised(place: Path, text: str) -> None:
    path = place / "entry.json"
    path.write_text(text)

    done = run(place, str(path))

    assert done.returncode == 2
    assert done.stderr.startswith("replay: the entry can't be read")


def test_a_branch_that_cant_be_reached_is_told_not_raised(place: Path) -> None:
    path = place / "entry.json"
    path.write_text(json.dumps(ReplayEntry("42", ("select 1",)).to_json()))

    done = run(place, str(path), dsn=str(place / "missing" / "no.duckdb"))

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("replay: ")


def test_starting_loads_no_heavy_library(place: Path) -> None:
    program = (
        "import sys; import proctor_grader.agents.replay;"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "grader/src")},
        capture_output=True,
        text=True,
        check=True,
    )

    heavy = {"typer", "pydantic", "boto3", "yaml", "duckdb", "psycopg", "simplejson", "asyncio"}
    assert heavy & set(eval(done.stdout)) == set()
