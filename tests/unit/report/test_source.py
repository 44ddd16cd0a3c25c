"""Evidence read for people: bounded, masked, and silent about what is not there."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from proctor_grader.errors import StoreError
from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import RunId, Stage, unit_id
from proctor_grader.report import source
from proctor_grader.report.source import StoreEvidence, excerpt_of
from proctor_grader.report.table import CaptureRows
from proctor_grader.store.layout import RunKeys
from tests.make.store import MemoryStore

KEYS = RunKeys.local(RunId("run-1"))
UNIT = unit_id(TaskId("t"))
ATTEMPT = KEYS.attempt(UNIT, 2)
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put(ATTEMPT.agent_file("prompt.txt"), b"How many?")
    store.put(ATTEMPT.log(Stage.SETUP), b"psql: connecting\n")
    store.put(KEYS.attempt(UNIT, 1).agent_file("prompt.txt"), b"first attempt")
    return store


def capture_file(path: Path, rows: int) -> bytes:
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE capture AS SELECT range::VARCHAR AS n FROM range({rows})")
    return path.read_bytes()


class TestTexts:
    def test_files_of_the_one_attempt_are_named_with_sizes(self, store: MemoryStore) -> None:
        with StoreEvidence(store, KEYS) as evidence:
            files = evidence.open(UNIT, 2).files()
        assert files == {source.PROMPT: 9, source.SETUP_LOG: 17}

    def test_what_is_there_is_read_and_what_is_not_is_none(self, store: MemoryStore) -> None:
        with StoreEvidence(store, KEYS) as evidence:
            attempt = evidence.open(UNIT, 2)
            prompt = attempt.text(source.PROMPT, 100)
            assert prompt is not None
            assert (prompt.head, prompt.tail, prompt.left_out_bytes) == ("How many?", "", 0)
            assert attempt.text(source.ANSWER, 100) is None

    def test_an_attempt_that_left_nothing_is_empty(self, store: MemoryStore) -> None:
        with StoreEvidence(store, KEYS) as evidence:
            assert evidence.open(UNIT, 7).files() == {}

    def test_a_file_that_vanished_is_none(self, store: MemoryStore) -> None:
        with StoreEvidence(store, KEYS) as evidence:
            attempt = evidence.open(UNIT, 2)
            store.delete(ATTEMPT.agent_file("prompt.txt"))
            assert attempt.text(source.PROMPT, 100) is None

    def test_a_store_that_is_away_is_an_error(self, store: MemoryStore) -> None:
        store.fail_next()
        with StoreEvidence(store, KEYS) as evidence, pytest.raises(StoreError):
            evidence.open(UNIT, 2)

    def test_the_whole_is_named_for_people(self, store: MemoryStore) -> None:
        with StoreEvidence(store, KEYS) as evidence:
            place = evidence.open(UNIT, 2).place(source.PROMPT)
        assert place == f"memory://store/{ATTEMPT.agent_file('prompt.txt')}"

    def test_a_large_text_is_read_from_a_file_and_cut_alike(self, store: MemoryStore) -> None:
        line = b"0123456789abcde\n"
        small, large = line * 50_000, line * 200_000
        store.put(ATTEMPT.agent_file("stdout.log"), small)
        store.put(ATTEMPT.agent_file("stderr.log"), large)
        with StoreEvidence(store, KEYS) as evidence:
            attempt = evidence.open(UNIT, 2)
            one, other = (attempt.text(n, 4096) for n in (source.STDOUT, source.STDERR))
        assert one is not None
        assert other is not None
        assert (one.head, one.tail) == (other.head, other.tail)
        assert (len(one.head), len(one.tail)) == (3072, 1024)
        assert one.left_out_bytes == len(small) - 4096
        assert other.left_out_bytes == len(large) - 4096
        reads = [call.operation for call in store.calls if call.key.endswith("stderr.log")]
        assert reads == ["put", "get_file"]


class TestCutting:
    @pytest.mark.parametrize("limit", range(60, 200, 7))
    def test_no_half_secret_is_left_at_either_edge(self, limit: int) -> None:
        text = ("x" * 20 + " " + TOKEN + " ") * 2_000
        cut = excerpt_of(text.encode(), limit)
        assert "ghp_" not in cut.head + cut.tail
        assert "a1B2a1B2" not in cut.head + cut.tail

    def test_bytes_that_are_no_text_are_replaced(self) -> None:
        assert excerpt_of(b"a\xffb", 10).head == "a\ufffdb"

    def test_a_short_text_is_whole(self) -> None:
        cut = excerpt_of(b"abc", 3)
        assert (cut.head, cut.tail, cut.left_out_bytes, cut.size_bytes) == ("abc", "", 0, 3)


class TestCaptures:
    def test_the_first_rows_are_read(self, store: MemoryStore, tmp_path: Path) -> None:
        store.put(ATTEMPT.capture("marts.o.duckdb"), capture_file(tmp_path / "c.duckdb", 50))
        with StoreEvidence(store, KEYS) as evidence:
            rows = evidence.open(UNIT, 2).capture_rows("marts.o", 2)
        assert rows == CaptureRows(("n",), (("0",), ("1",)), 50)

    def test_a_table_without_a_file_has_none(self, store: MemoryStore) -> None:
        with StoreEvidence(store, KEYS) as evidence:
            assert evidence.open(UNIT, 2).capture_rows("marts.o", 2) is None

    def test_a_broken_file_is_told_and_the_next_one_read(
        self, store: MemoryStore, tmp_path: Path
    ) -> None:
        store.put(ATTEMPT.capture("bad.duckdb"), b"no database at all" * 1000)
        store.put(ATTEMPT.capture("good.duckdb"), capture_file(tmp_path / "c.duckdb", 1))
        with StoreEvidence(store, KEYS) as evidence:
            attempt = evidence.open(UNIT, 2)
            bad, good = attempt.capture_rows("bad", 2), attempt.capture_rows("good", 2)
        assert bad is not None
        assert bad.note.startswith("the capture can't be read: ")
        assert str(tmp_path) not in bad.note
        assert good is not None
        assert good.total == 1

    def test_a_huge_capture_is_not_fetched(self, store: MemoryStore) -> None:
        store.put(ATTEMPT.capture("huge.duckdb"), bytes(64 * 1024 * 1024 + 1))
        with StoreEvidence(store, KEYS) as evidence:
            rows = evidence.open(UNIT, 2).capture_rows("huge", 2)
        assert rows is not None
        assert "too large" in rows.note
        assert all(call.operation != "get_file" for call in store.calls)

    def test_a_capture_cannot_reach_other_files(self, store: MemoryStore, tmp_path: Path) -> None:
        secret = tmp_path / "secret.csv"
        secret.write_text("a\nsecret\n")
        path = tmp_path / "c.duckdb"
        with duckdb.connect(path) as database:
            database.execute(f"CREATE VIEW capture AS SELECT * FROM read_csv('{secret}')")
        store.put(ATTEMPT.capture("v.duckdb"), path.read_bytes())
        with StoreEvidence(store, KEYS) as evidence:
            rows = evidence.open(UNIT, 2).capture_rows("v", 2)
        assert rows is not None
        assert rows.rows == ()
        assert "can't be read" in rows.note
