"""What every engine must do, written once: subclass both classes and provide `engine`.

    class TestPostgresReader(WarehouseContract): ...
    class TestPostgresAdapter(BranchAdapterContract): ...

with a fixture `engine` that gives an `Engine` over an empty base of this test alone.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proctor_grader.errors import BranchError, QueryError
from proctor_grader.warehouse.base import (
    Branch,
    BranchAdapter,
    CaptureTooLarge,
    Column,
    GrainCounts,
    Mark,
    Relation,
    RelationKind,
    StatementResult,
    TableShape,
    Warehouse,
)

EXPIRES = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
NASTY = [
    "",
    "a,b",
    'say "hi"',
    "tab\there",
    "line\nbreak",
    "cr\r\nlf",
    "back\\slash",
    "\\N",
    "NULL",
]
NASTY += ["'", ";", " padded ", "é😀\u200b", '""', ",", "\n", "\r", "\\", "x" * 100_000]


class Engine(ABC):
    """One engine over one base, as the contract sees it."""

    default_schema: str
    """Where an unqualified name is made."""

    types: dict[str, str]
    """How the engine spells `integer`, `varchar`, `numeric` (of numeric(12,2)) and `double`."""

    @cached_property
    def token(self) -> str:
        """Six hex digits of this test alone: parallel tests may share a server."""
        return secrets.token_hex(3)

    @property
    def name(self) -> str:
        """A branch's name."""
        return f"eval-{self.token}-t1-fan-out-f4a171"

    @property
    def mark(self) -> Mark:
        """The mark of the installation under test."""
        return Mark(f"inst-{self.token}", "run-1", EXPIRES)

    def adapter(self) -> BranchAdapter:
        """An adapter of the installation under test."""
        return self.open_adapter(self.mark.installation)

    @abstractmethod
    def write_base(self, *statements: str) -> None:
        """Run statements in the base and leave no session behind."""

    @abstractmethod
    def open_adapter(self, installation: str) -> BranchAdapter:
        """An adapter over the base."""

    @abstractmethod
    def execute(self, dsn: str, statements: Iterable[str]) -> Iterator[StatementResult]:
        """The engine's own `execute`."""

    def run(self, branch: Branch, *statements: str) -> list[StatementResult]:
        """Run statements as the agent; every one must succeed."""
        results = list(self.execute(branch.agent_dsn, statements))
        assert [r.error for r in results] == [""] * len(statements)
        return results

    @contextmanager
    def reader(self, *statements: str) -> Iterator[Warehouse]:
        """The grader's view of a fresh branch on which an agent has run statements."""
        adapter = self.adapter()
        try:
            branch = adapter.create(self.name, self.mark)
            self.run(branch, *statements)
            with adapter.open_reader(branch) as reader:
                yield reader
            adapter.drop(self.name)
        finally:
            adapter.close()


def relation(schema: str, name: str, kind: RelationKind = RelationKind.TABLE) -> Relation:
    return Relation(schema, name, kind)


def captured(path: Path) -> list[tuple[Any, ...]]:
    """All rows of a capture file, in the order they lie in it."""
    with duckdb.connect(str(path), read_only=True) as file:
        assert file.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("capture",)]
        types = file.execute(
            "SELECT DISTINCT data_type FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
        assert types == [("VARCHAR",)]
        return file.execute("SELECT * FROM capture").fetchall()


class WarehouseContract:
    """Questions to a branch."""

    def test_relations_are_sorted_and_say_their_kind(self, engine: Engine) -> None:
        with engine.reader(
            "CREATE SCHEMA marts",
            "CREATE TABLE marts.fct (a integer)",
            'CREATE TABLE marts."Fct" (a integer)'
            if engine.default_schema == "public"
            else "CREATE TABLE marts.ftc (a integer)",
            "CREATE VIEW marts.a_view AS SELECT 1 AS one",
            "CREATE TABLE here (a integer)",
        ) as reader:
            found = reader.relations()
        names = [(r.schema, r.name) for r in found]
        assert names == sorted(names, key=lambda pair: tuple(p.encode() for p in pair))
        assert {(r.schema, r.name, r.kind, r.is_default_schema) for r in found} >= {
            ("marts", "fct", RelationKind.TABLE, False),
            ("marts", "a_view", RelationKind.VIEW, False),
            (engine.default_schema, "here", RelationKind.TABLE, True),
        }
        assert len(found) == 4

    def test_columns_are_spelled_as_in_information_schema(self, engine: Engine) -> None:
        with engine.reader(
            "CREATE TABLE t (id integer NOT NULL, amount numeric(12,2),"
            ' "Some ""Name""" varchar, ratio double precision)'
        ) as reader:
            columns = reader.columns(relation(engine.default_schema, "t"))
        types = engine.types
        assert columns == (
            Column(1, "id", types["integer"], False, True),
            Column(2, "amount", types["numeric"], True, True),
            Column(3, 'Some "Name"', types["varchar"], True, False),
            Column(4, "ratio", types["double"], True, True),
        )

    def test_columns_of_a_view(self, engine: Engine) -> None:
        with engine.reader("CREATE VIEW v AS SELECT 1 AS one, 'x' AS x") as reader:
            view = relation(engine.default_schema, "v", RelationKind.VIEW)
            assert [c.name for c in reader.columns(view)] == ["one", "x"]

    def test_row_count_of_table_and_view(self, engine: Engine) -> None:
        with engine.reader(
            'CREATE TABLE "odd "" name" AS SELECT * FROM (VALUES (1), (2), (3)) AS v(a)',
            'CREATE VIEW v AS SELECT a FROM "odd "" name" WHERE a > 1',
        ) as reader:
            assert reader.row_count(relation(engine.default_schema, 'odd " name')) == 3
            view = relation(engine.default_schema, "v", RelationKind.VIEW)
            assert reader.row_count(view) == 2

    @pytest.mark.parametrize(
        ("rows", "columns", "expected", "unique"),
        [
            pytest.param("", ["a"], (0, 0, 0), True, id="empty-table-passes"),
            pytest.param("(1,1),(2,1)", ["a"], (2, 2, 0), True, id="unique-in-one-column"),
            pytest.param("(1,1),(1,1)", ["a"], (2, 1, 0), False, id="duplicate"),
            pytest.param("(1,1),(1,2)", ["a", "B c"], (2, 2, 0), True, id="unique-in-two-columns"),
            pytest.param("(NULL,1),(2,1)", ["a"], (2, 2, 1), False, id="a-null-fails"),
            pytest.param("(1,NULL),(1,2)", ["a", "B c"], (2, 2, 1), False, id="null-in-second"),
            pytest.param("(NULL,1),(NULL,1)", ["a"], (2, 1, 2), False, id="nulls-are-one-value"),
        ],
    )
    def test_grain_counts(
        self,
        engine: Engine,
        rows: str,
        columns: list[str],
        expected: tuple[int, int, int],
        unique: bool,
    ) -> None:
        fill = [f"INSERT INTO t VALUES {rows}"] if rows else []
        with engine.reader('CREATE TABLE t (a integer, "B c" integer)', *fill) as reader:
            counts = reader.grain_counts(relation(engine.default_schema, "t"), columns)
        assert counts == GrainCounts(*expected)
        assert counts.unique is unique

    def test_sums_are_exact_and_nulls_are_counted(self, engine: Engine) -> None:
        with engine.reader(
            "CREATE TABLE t (i integer, n numeric(12,2), big numeric(30,10), s varchar,"
            " nothing integer)",
            "INSERT INTO t VALUES (1, 0.10, 12345678901234567890.0000000001, 'x', NULL),"
            " (2147483647, 0.20, 0.0000000001, NULL, NULL), (NULL, 0.30, NULL, NULL, NULL)",
        ) as reader:
            table = relation(engine.default_schema, "t")
            stats = reader.column_stats(table, reader.columns(table))
        assert list(stats) == ["i", "n", "big", "s", "nothing"]
        assert {name: (s.nulls, s.sum) for name, s in stats.items()} == {
            "i": (1, "2147483648"),
            "n": (0, "0.60"),
            "big": (1, "12345678901234567890.0000000002"),
            "s": (2, None),
            "nothing": (3, None),
        }

    def test_column_stats_of_an_empty_table(self, engine: Engine) -> None:
        with engine.reader("CREATE TABLE t (i integer, s varchar)") as reader:
            table = relation(engine.default_schema, "t")
            stats = reader.column_stats(table, reader.columns(table))
        assert {name: (s.nulls, s.sum) for name, s in stats.items()} == {
            "i": (0, None),
            "s": (0, None),
        }

    def test_full_dump_keeps_every_byte(self, engine: Engine, tmp_path: Path) -> None:
        quoted = [text.replace("'", "''") for text in NASTY]
        values = ",".join(f"({i}, '{text}')" for i, text in enumerate(quoted))
        path = tmp_path / "t.duckdb"
        with engine.reader(
            'CREATE TABLE t (id integer, "Text, ""odd""" varchar)',
            f"INSERT INTO t VALUES {values}, (99, NULL)",
        ) as reader:
            written = reader.dump(
                relation(engine.default_schema, "t"), path, limit=None, max_bytes=10**8
            )
        assert written == len(NASTY) + 1
        expected = {(str(i), text) for i, text in enumerate(NASTY)} | {("99", None)}
        assert set(captured(path)) == expected
        with duckdb.connect(str(path), read_only=True) as file:
            names = [row[0] for row in file.execute("DESCRIBE capture").fetchall()]
        assert names == ["id", 'Text, "odd"']

    def test_dump_of_one_column_keeps_null_and_empty_apart(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "t.duckdb"
        with engine.reader(
            "CREATE TABLE t (s varchar)", "INSERT INTO t VALUES (''), (NULL), ('x'), (NULL)"
        ) as reader:
            table = relation(engine.default_schema, "t")
            assert reader.dump(table, path, limit=None, max_bytes=10**8) == 4
        rows = captured(path)
        assert sorted(rows, key=str) == sorted([("",), (None,), ("x",), (None,)], key=str)

    def test_dump_of_an_empty_table(self, engine: Engine, tmp_path: Path) -> None:
        path = tmp_path / "t.duckdb"
        with engine.reader("CREATE TABLE t (s varchar, i integer)") as reader:
            table = relation(engine.default_schema, "t")
            assert reader.dump(table, path, limit=None, max_bytes=10**8) == 0
        assert captured(path) == []

    def test_sample_is_ordered_by_all_columns_nulls_last_text_by_bytes(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "t.duckdb"
        with engine.reader(
            "CREATE TABLE t (i integer, s varchar)",
            "INSERT INTO t VALUES (NULL, 'a'), (2, 'é'), (2, 'Z'), (2, 'a'), (10, 'b'), (2, NULL),"
            " (2, '')",
        ) as reader:
            table = relation(engine.default_schema, "t")
            assert reader.dump(table, path, limit=6, max_bytes=10**8) == 6
        expected = [("2", ""), ("2", "Z"), ("2", "a"), ("2", "é"), ("2", None), ("10", "b")]
        assert captured(path) == expected

    def test_dump_over_the_limit_leaves_no_file(self, engine: Engine, tmp_path: Path) -> None:
        path = tmp_path / "t.duckdb"
        many = ",".join(f"('{i * 7919 % 10007}-{'y' * 500}{i}')" for i in range(4000))
        with engine.reader("CREATE TABLE t (s varchar)", f"INSERT INTO t VALUES {many}") as reader:
            with pytest.raises(CaptureTooLarge) as caught:
                reader.dump(
                    relation(engine.default_schema, "t"), path, limit=None, max_bytes=300_000
                )
            assert reader.row_count(relation(engine.default_schema, "t")) == 4000
        assert caught.value.limit_bytes == 300_000
        assert list(tmp_path.iterdir()) == []

    def test_failed_dump_leaves_no_file(self, engine: Engine, tmp_path: Path) -> None:
        with engine.reader(
            "CREATE TABLE t (s varchar)",
            "INSERT INTO t VALUES ('1'), ('x')",
            "CREATE VIEW v AS SELECT CAST(s AS integer) AS i FROM t",
        ) as reader:
            view = relation(engine.default_schema, "v", RelationKind.VIEW)
            with pytest.raises(QueryError):
                reader.dump(view, tmp_path / "v.duckdb", limit=None, max_bytes=10**8)
        assert list(tmp_path.iterdir()) == []

    def test_view_that_fails_is_the_branchs_fault_and_the_reader_goes_on(
        self, engine: Engine
    ) -> None:
        with engine.reader(
            "CREATE TABLE t (s varchar)",
            "INSERT INTO t VALUES ('x')",
            "CREATE VIEW v AS SELECT CAST(s AS integer) AS i FROM t",
        ) as reader:
            view = relation(engine.default_schema, "v", RelationKind.VIEW)
            with pytest.raises(QueryError):
                reader.grain_counts(view, ["i"])
            assert reader.row_count(relation(engine.default_schema, "t")) == 1

    def test_missing_relation_and_column_are_query_errors(self, engine: Engine) -> None:
        with engine.reader("CREATE TABLE t (a integer)") as reader:
            with pytest.raises(QueryError):
                reader.row_count(relation(engine.default_schema, "gone"))
            with pytest.raises(QueryError):
                reader.grain_counts(relation(engine.default_schema, "t"), ["gone"])

    def test_estimate_grows_with_the_table(self, engine: Engine) -> None:
        rows = "SELECT a, 'some text of a row' AS s FROM generate_series(1, {}) AS g(a)"
        with engine.reader(
            f"CREATE TABLE small AS {rows.format(10)}",
            f"CREATE TABLE large AS {rows.format(50000)}",
        ) as reader:
            small = reader.estimated_bytes(relation(engine.default_schema, "small"))
            large = reader.estimated_bytes(relation(engine.default_schema, "large"))
        assert 0 <= small < large
        assert 100_000 < large < 100_000_000

    def test_shapes_hold_base_tables_only(self, engine: Engine) -> None:
        with engine.reader(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.orders (order_id integer NOT NULL, amount numeric(12,2))",
            "INSERT INTO raw.orders VALUES (1, 2), (2, 3)",
            'CREATE TABLE raw."B" (x varchar)',
            "CREATE VIEW raw.v AS SELECT * FROM raw.orders",
        ) as reader:
            shapes = reader.shapes()
        types = engine.types
        assert shapes == (
            TableShape("raw", "B", 0, (Column(1, "x", types["varchar"], True, False),)),
            TableShape(
                "raw",
                "orders",
                2,
                (
                    Column(1, "order_id", types["integer"], False, True),
                    Column(2, "amount", types["numeric"], True, True),
                ),
            ),
        )

    def test_shapes_of_nothing(self, engine: Engine) -> None:
        with engine.reader() as reader:
            assert reader.shapes() == ()
            assert reader.relations() == ()

    def test_closing_twice_is_fine(self, engine: Engine) -> None:
        with engine.reader() as reader:
            reader.close()
            reader.close()


class BranchAdapterContract:
    """The life of branches."""

    def test_branch_is_a_copy_that_the_agent_may_change(self, engine: Engine) -> None:
        engine.write_base("CREATE TABLE t (a integer)", "INSERT INTO t VALUES (1), (2)")
        adapter = engine.adapter()
        branch = adapter.create(engine.name, engine.mark)
        assert branch.name == engine.name
        engine.run(branch, "INSERT INTO t VALUES (3)", "CREATE SCHEMA marts", "DROP TABLE t")
        fresh = adapter.create(f"{engine.name}-2", engine.mark)
        assert engine.run(fresh, "SELECT count(*) FROM t")[0].rows == (("2",),)
        adapter.drop(engine.name)
        adapter.drop(f"{engine.name}-2")
        assert adapter.list_marked() == ()

    def test_reader_sees_what_the_agent_left(self, engine: Engine) -> None:
        adapter = engine.adapter()
        branch = adapter.create(engine.name, engine.mark)
        engine.run(branch, "CREATE SCHEMA marts", "CREATE TABLE marts.t AS SELECT 1 AS a")
        with adapter.open_reader(branch) as reader:
            assert reader.engine == adapter.engine
            assert reader.row_count(relation("marts", "t")) == 1
        adapter.drop(engine.name)

    def test_secrets_are_in_no_other_field(self, engine: Engine) -> None:
        adapter = engine.adapter()
        branch = adapter.create(engine.name, engine.mark)
        for secret in branch.secrets:
            assert len(secret) >= 12
            assert secret in branch.agent_dsn + branch.grader_dsn
            assert secret not in branch.name + adapter.location
        adapter.drop(engine.name)

    def test_marks_are_listed_by_name_and_come_back_whole(self, engine: Engine) -> None:
        adapter = engine.adapter()
        later = Mark(engine.mark.installation, "run-2", EXPIRES + timedelta(hours=1))
        adapter.create(f"eval-{engine.token}-b-000002", engine.mark)
        adapter.create(f"eval-{engine.token}-a-000001", later)
        listed = [(r.name, r.mark, r.busy) for r in adapter.list_marked()]
        assert listed == [
            (f"eval-{engine.token}-a-000001", later, False),
            (f"eval-{engine.token}-b-000002", engine.mark, False),
        ]
        for name, _, _ in listed:
            adapter.drop(name)
        assert adapter.list_marked() == ()

    def test_another_installation_neither_sees_nor_drops_it(self, engine: Engine) -> None:
        ours, theirs = engine.adapter(), engine.open_adapter(f"other-{engine.token}")
        branch = ours.create(engine.name, engine.mark)
        assert theirs.list_marked() == ()
        with pytest.raises(BranchError, match=engine.name):
            theirs.drop(engine.name)
        with pytest.raises(BranchError, match=engine.name):
            theirs.fence(engine.name)
        with pytest.raises(BranchError, match=engine.name):
            theirs.create(engine.name, Mark(f"other-{engine.token}", "run-9", EXPIRES))
        engine.run(branch, "CREATE TABLE still_here (a integer)")
        ours.drop(engine.name)

    def test_create_replaces_a_leftover_of_our_own(self, engine: Engine) -> None:
        adapter = engine.adapter()
        engine.run(adapter.create(engine.name, engine.mark), "CREATE TABLE old (a integer)")
        branch = adapter.create(engine.name, engine.mark)
        with adapter.open_reader(branch) as reader:
            assert reader.relations() == ()
        adapter.drop(engine.name)

    def test_drop_and_fence_of_nothing_succeed(self, engine: Engine) -> None:
        adapter = engine.adapter()
        adapter.fence(engine.name)
        adapter.drop(engine.name)
        adapter.create(engine.name, engine.mark)
        adapter.drop(engine.name)
        adapter.drop(engine.name)
        adapter.fence(engine.name)
        assert adapter.list_marked() == ()

    def test_a_fenced_branch_is_still_listed_and_dropped(self, engine: Engine) -> None:
        adapter = engine.adapter()
        adapter.create(engine.name, engine.mark)
        adapter.fence(engine.name)
        adapter.fence(engine.name)
        assert [record.name for record in adapter.list_marked()] == [engine.name]
        adapter.drop(engine.name)
        assert adapter.list_marked() == ()

    def test_read_units_see_the_data_and_not_each_other(self, engine: Engine) -> None:
        engine.write_base("CREATE TABLE t (a integer)", "INSERT INTO t VALUES (1), (2)")
        adapter = engine.adapter()
        shared = adapter.create_shared(engine.name, engine.mark)
        assert shared.agent_dsn == ""
        units = [adapter.grant_read(shared, f"{engine.name}-{i}", engine.mark) for i in (1, 2)]
        assert len({unit.agent_dsn for unit in units}) == 2
        list(engine.execute(units[0].agent_dsn, ["CREATE TABLE mine (a integer)", "DELETE FROM t"]))
        assert engine.run(units[1], "SELECT count(*) FROM t")[0].rows == (("2",),)
        with adapter.open_reader(units[1]) as reader:
            assert [r.name for r in reader.relations()] == ["t"]
        listed = [record.name for record in adapter.list_marked()]
        assert listed == sorted([engine.name, *(unit.name for unit in units)])
        adapter.drop(units[0].name)
        assert engine.run(units[1], "SELECT count(*) FROM t")[0].rows == (("2",),)
        adapter.drop(units[1].name)
        adapter.drop(engine.name)
        assert adapter.list_marked() == ()

    def test_shared_branch_goes_before_its_units(self, engine: Engine) -> None:
        adapter = engine.adapter()
        shared = adapter.create_shared(engine.name, engine.mark)
        adapter.grant_read(shared, f"{engine.name}-1", engine.mark)
        adapter.drop(engine.name)
        adapter.drop(f"{engine.name}-1")
        assert adapter.list_marked() == ()

    def test_shapes_of_the_shared_branch_are_the_bases(self, engine: Engine) -> None:
        engine.write_base(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.t (a integer NOT NULL)",
            "INSERT INTO raw.t VALUES (1)",
        )
        adapter = engine.adapter()
        with adapter.open_reader(adapter.create_shared(engine.name, engine.mark)) as reader:
            (shape,) = reader.shapes()
        assert (shape.schema, shape.name, shape.row_count) == ("raw", "t", 1)
        adapter.drop(engine.name)

    def test_nothing_is_missing_on_a_proper_base(self, engine: Engine) -> None:
        adapter = engine.adapter()
        assert [s for s in adapter.privileges() if s.fatal] == []
        assert adapter.list_marked() == ()

    @pytest.mark.parametrize("name", ["", "x" * 64, "a/b", "../up", 'quo"te', "Upper", "a_b"])
    def test_names_outside_the_rule_are_refused(self, engine: Engine, name: str) -> None:
        adapter = engine.adapter()
        with pytest.raises(BranchError):
            adapter.create(name, engine.mark)
        assert adapter.list_marked() == ()

    def test_failed_statement_gives_the_databases_message_and_the_next_one_runs(
        self, engine: Engine
    ) -> None:
        adapter = engine.adapter()
        branch = adapter.create(engine.name, engine.mark)
        bad, good = engine.execute(
            branch.agent_dsn, ["SELECT * FROM missing_table", "SELECT 1 AS a"]
        )
        assert "missing_table" in bad.error
        assert (good.columns, good.rows, good.row_count, good.error) == (("a",), (("1",),), 1, "")
        adapter.drop(engine.name)

    def test_statement_results_are_text_and_cut(self, engine: Engine) -> None:
        adapter = engine.adapter()
        branch = adapter.create(engine.name, engine.mark)
        nulls, many = engine.run(
            branch,
            "SELECT NULL AS n, 1.50 AS d, 'x' AS s",
            "SELECT a FROM generate_series(1, 250) AS g(a)",
        )
        assert nulls.rows == ((None, "1.50", "x"),)
        assert many.row_count == 250
        assert many.rows == tuple((str(i),) for i in range(1, 101))
        adapter.drop(engine.name)
