"""A real workload: TPC-H at scale factor 0.01, by the command line, on DuckDB and on PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import pytest

from proctor_grader import grade_checks
from tests.e2e.cli import Finished, Proctor
from tests.services.session import locked

if TYPE_CHECKING:
    from tests.services.postgres import PostgresBase, PostgresServer

ROOT = Path(__file__).resolve().parents[2]
TPCH = ROOT / "examples" / "tpch"
REPLAY = f"replay:{TPCH / 'replay.yaml'}"
EVAL_SET = json.loads((TPCH / "eval.json").read_text("utf-8"), parse_float=Decimal)
TASKS = {task["id"]: task for task in EVAL_SET["tasks"]}
READ_TASKS = [task for task in TASKS if TASKS[task].get("class", "read") == "read"]
QUESTIONS = {task: task[1:3].lstrip("0") for task in READ_TASKS} | {"build_nation_volume": "7"}
"""Task -> number of the benchmark's query whose published answer holds its golds."""

VOLUME, LATE, CURRENT = "marts.nation_volume", "marts.late_orders", "marts.current_orders"

# Verdict, outcome, cause of every task when the recorded agent works on it.
RECORDED = {
    "q01_returned_lines": ("CORRECT", "passed", None),
    "q03_largest_open_order": ("OFF", "failed", None),
    "q04_late_by_priority": ("CORRECT", "passed", None),
    "q05_local_sales_asia": ("OFF", "failed", None),
    "q06_discount_savings": ("CORRECT", "passed", None),
    "q08_brazil_share": ("UNKNOWN", "failed", None),
    "q10_top_returner": ("CORRECT", "passed", None),
    "q11_german_stock": ("CORRECT", "passed", None),
    "q12_late_mail_and_ship": ("PARTIAL", "failed", None),
    "q13_silent_customers": ("PARTIAL", "failed", None),
    "q14_promo_share": ("OFF", "failed", None),
    "q15_top_supplier": ("CORRECT", "passed", None),
    "q18_large_orders": ("ERROR", "failed", "agent"),
    "q19_hand_delivered": ("OFF", "failed", None),
    "q21_blocking_supplier": ("ERROR", "failed", "agent"),
    "q22_dormant_customers": ("CORRECT", "passed", None),
    "build_late_orders": ("OFF", "failed", None),
    "build_nation_volume": ("CORRECT", "passed", None),
    "merge_delivery": ("CORRECT", "passed", None),
}


class Warehouse(Protocol):
    """The benchmark's data in one engine."""

    @property
    def url(self) -> str: ...

    def query(self, statement: str) -> list[tuple[Any, ...]]: ...

    def leftovers(self) -> list[str]: ...

    def state(self) -> object: ...


@dataclass(frozen=True)
class DuckDBFile:
    path: Path

    @property
    def url(self) -> str:
        return f"duckdb:///{self.path}"

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.path), read_only=True) as session:
            return session.execute(statement).fetchall()

    def leftovers(self) -> list[str]:
        return [path.name for path in self.path.parent.iterdir() if path != self.path]

    def state(self) -> object:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class PostgresDatabase:
    base: PostgresBase

    @property
    def url(self) -> str:
        return self.base.url

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with self.base.connect() as session:
            return session.execute(statement.encode()).fetchall()

    def leftovers(self) -> list[str]:
        """Roles that the admin made or was given, and databases that belong to them."""
        with self.base.server.connect() as session:
            found = session.execute(
                """
                SELECT rolname FROM pg_roles WHERE NOT starts_with(rolname, 'pg_')
                  AND rolname <> %(admin)s AND pg_has_role(%(admin)s, oid, 'MEMBER')
                UNION ALL
                SELECT datname FROM pg_database
                WHERE datname <> %(base)s AND pg_has_role(%(admin)s, datdba, 'MEMBER')
                """,
                {"admin": self.base.admin, "base": self.base.name},
            )
            return [str(row[0]) for row in found]

    def state(self) -> object:
        return self.query(
            "select relnamespace::regnamespace::text, relname, relowner, relacl::text "
            "from pg_class where relkind = 'r' union all "
            "select nspname, '', nspowner, nspacl::text from pg_namespace order by 1, 2"
        )


@pytest.fixture(scope="session")
def tpch_file() -> Path:
    """The warehouse as build.py makes it, once for all workers and clones."""
    named = os.environ.get("PROCTOR_TEST_CACHE")
    cache = Path(named) if named else Path.home() / ".cache" / "proctor"
    makers = [(TPCH / name).read_bytes() for name in ("build.py", "dbgen.py")]
    folder = cache / f"tpch-data-{hashlib.sha256(b''.join(makers)).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tpch.duckdb"
    with locked(folder / "lock"):
        if not file.exists():
            made = _python(TPCH / "build.py", file)
            if made.returncode and os.environ.get("CI") == "true":
                pytest.fail(made.stderr, pytrace=False)
            if made.returncode:
                pytest.skip(f"REAL PART MISSING: TPC-H extension from PyPI: {made.stderr[-500:]}")
    return file


@pytest.fixture(scope="module")
def published(tpch_file: Path) -> dict[str, str]:
    """The benchmark's answers: query number -> header and rows, cells between bars."""
    answers = tpch_file.with_name(f"{tpch_file.name}.answers.json")
    found: dict[str, str] = json.loads(answers.read_text("utf-8"))
    return found


@contextmanager
def _in_duckdb(file: Path, factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    copy = factory.mktemp("tpch") / "tpch.duckdb"
    copy.write_bytes(file.read_bytes())
    yield DuckDBFile(copy)


@contextmanager
def _in_postgres(file: Path, server: PostgresServer) -> Iterator[Warehouse]:
    base = server.make_base()
    try:
        loaded = _python(TPCH / "load_postgres.py", file, base.url)
        assert loaded.returncode == 0, loaded.stderr
        yield PostgresDatabase(base)
    finally:
        server.drop_base(base)


@pytest.fixture(
    scope="module", params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def warehouse(
    request: pytest.FixtureRequest, tpch_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    """The benchmark's data, loaded the documented way."""
    opened: AbstractContextManager[Warehouse] = (
        _in_duckdb(tpch_file, tmp_path_factory)
        if request.param == "duckdb"
        else _in_postgres(tpch_file, request.getfixturevalue("postgres_server"))
    )
    with opened as found:
        yield found


def test_the_set_is_as_large_as_promised_and_without_warnings(tmp_path: Path) -> None:
    checked = Proctor(tmp_path).run("check", str(TPCH), "--strict", "-o", "json")
    assert (checked.code, checked.document["warnings"]) == (0, [])
    classes = [task["class"] for task in checked.document["tasks"]]
    assert (classes.count("read"), classes.count("write")) == (16, 3)
    assert all(task["doc"] and task["prompt"] for task in checked.document["tasks"])


@pytest.mark.parametrize("task", QUESTIONS)
def test_golds_are_the_published_answers(task: str, published: dict[str, str]) -> None:
    cells = re.split(r"[|\n]", published[QUESTIONS[task]])
    numbers = {Decimal(cell) for cell in cells if re.fullmatch(r"-?\d+(\.\d+)?", cell)}
    golds = [Decimal(check["value"]) for check in TASKS[task]["checks"]]
    assert golds
    assert [gold for gold in golds if gold not in numbers] == []


def test_documented_queries_give_the_golds(warehouse: Warehouse) -> None:
    default = EVAL_SET["defaults"]["tolerance"]
    verdicts = {}
    for task in READ_TASKS:
        documented = (TPCH / "docs" / f"{task}.md").read_text("utf-8")
        queries = re.findall(r"```sql\n(.*?)```", documented, re.DOTALL)
        assert len(queries) == 1, task
        cells = [f"{cell}" for row in warehouse.query(queries[0]) for cell in row]
        checks = [{"tolerance": default, **check} for check in TASKS[task]["checks"]]
        verdicts[task] = grade_checks("\n".join(cells), checks).verdict.value
    assert verdicts == dict.fromkeys(READ_TASKS, "CORRECT")


def test_loading_again_changes_nothing(warehouse: Warehouse, tpch_file: Path) -> None:
    if isinstance(warehouse, PostgresDatabase):
        again = _python(TPCH / "load_postgres.py", tpch_file, warehouse.url)
        assert again.returncode == 0, again.stderr
    counts = {
        table: warehouse.query(f"select count(*) from {table}")[0][0]
        for table in ("region", "nation", "part", "partsupp", "customer", "orders", "lineitem")
    }
    assert list(counts.values()) == [5, 25, 2000, 8000, 1500, 15000, 60175]


def test_oracle_passes_every_task(warehouse: Warehouse, tmp_path: Path) -> None:
    finished, results = _run(tmp_path, warehouse, "oracle")
    assert _verdicts(results) == dict.fromkeys(TASKS, ("CORRECT", "passed", None))
    assert finished.code == 0
    # It builds what is graded as a table, and no more: a missing table is evidence like any other.
    assert results["build_nation_volume"]["captures"] == {VOLUME: {"exists": False}}
    assert results["merge_delivery"]["captures"][CURRENT]["row_count"] == 15015


def test_none_fails_every_task(warehouse: Warehouse, tmp_path: Path) -> None:
    finished, results = _run(tmp_path, warehouse, "none")
    rebuilt = {"build_late_orders", "merge_delivery"}
    expected = {task: "OFF" if task in rebuilt else "UNKNOWN" for task in TASKS}
    assert _verdicts(results) == {task: (word, "failed", None) for task, word in expected.items()}
    assert finished.code == 1


def test_recorded_agent_gets_exactly_these_verdicts(
    warehouse: Warehouse, tmp_path: Path, published: dict[str, str]
) -> None:
    finished, results = _run(tmp_path, warehouse, REPLAY)
    assert _verdicts(results) == RECORDED
    assert finished.code == 1
    outcomes = finished.document["record"]["variants"]["default"]["outcomes"]
    assert outcomes == {"passed": 9, "failed": 10, "ungraded": 0, "error": 0, "cancelled": 0}

    late = results["build_late_orders"]
    assert [(item["name"], item["passed"]) for item in late["items"]] == [
        ("exists", True),
        ("row_count", False),
        ("grain", False),
        ("columns", True),
    ]
    grain = {"key": ["o_orderkey"], "distinct": 535, "unique": False}
    assert (late["captures"][LATE]["row_count"], late["captures"][LATE]["grain"]) == (1439, grain)

    stages = results["merge_delivery"]["stages"]
    assert list(stages) == ["branch", "setup", "agent", "teardown", "drop"]
    assert {name for name, stage in stages.items() if not stage["ok"]} == {"agent"}
    assert _kept(tmp_path, finished, "merge_delivery", "setup.log") == b"delivered: 40\n"
    assert _kept(tmp_path, finished, "merge_delivery", "teardown.log") == b"staging is gone\n"

    volume = results["build_nation_volume"]["captures"][VOLUME]
    assert (volume["row_count"], volume["columns"]["revenue"]["sum"]) == (4, "1572186.2490")
    sample = tmp_path / "sample.duckdb"
    sample.write_bytes(
        _kept(tmp_path, finished, "build_nation_volume", f"captures/{VOLUME}.duckdb")
    )
    with duckdb.connect(str(sample), read_only=True) as captured:
        rows = captured.execute("select * from capture").fetchall()
    lines = published["7"].strip().splitlines()[1:]
    assert rows == [tuple(line.split("|")) for line in lines]


def _run(
    home: Path, warehouse: Warehouse, agent: str
) -> tuple[Finished, dict[str, dict[str, Any]]]:
    """Run the set; nothing may be left in the warehouse and on disk, and the base is as it was."""
    proctor, before = Proctor(home), warehouse.state()
    words = ["run", str(TPCH), "--agent", agent, "--warehouse", warehouse.url, "-o", "json"]
    finished = proctor.run(*words, timeout=300)
    assert finished.stdout, finished.stderr
    assert (finished.document["end"], finished.document["reason"]) == ("Complete", "")
    assert warehouse.leftovers() == []
    assert [name for name in proctor.branches() if not name.startswith(".")] == []
    assert proctor.runs_held() == []
    assert warehouse.state() == before
    return finished, proctor.results(finished.document["run"])


def _verdicts(results: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str, str | None]]:
    return {
        task: (result["verdict"], result["outcome"], result["cause"])
        for task, result in results.items()
    }


def _kept(home: Path, finished: Finished, task: str, name: str) -> bytes:
    """A file kept of a task's first and only attempt."""
    run = Proctor(home).store / "runs" / "local" / str(finished.document["run"])
    files = list(run.glob(f"units/{task.replace('_', '-')}-*/attempts/1/{name}"))
    assert len(files) == 1
    return files[0].read_bytes()


def _python(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False
    )
