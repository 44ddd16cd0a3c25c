"""What an agent can make of its branch's folder, and what the grader says of it."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from proctor_grader.errors import QueryError
from tests.unit.warehouse.conftest import Shop
from tests.unit.warehouse.duckdbfile import MARK, table, write_database


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def do(path: Path) -> None:
        path.unlink()
        make(path)

    return do


def bind(path: Path) -> None:
    # by a short name: a socket's path may have 107 bytes
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)
        made.bind(path.name)


def sparse(path: Path) -> None:
    os.truncate(path, 0)
    os.truncate(path, 1 << 40)


def sparse_after_the_header(path: Path) -> None:
    os.truncate(path, 12288)
    os.truncate(path, 1 << 40)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in (4100, 8200):
        content[place] ^= 0xFF
    path.write_bytes(content)


def foreign_log(path: Path) -> None:
    other = write_database(path.with_name("other.duckdb"), "CREATE TABLE x (a INTEGER)")
    other.rename(path.with_name(f"{path.name}.wal"))


SPOILED = {
    "gone": Path.unlink,
    "empty": lambda path: os.truncate(path, 0),
    "text": lambda path: path.write_text("DROP TABLE students" * 500),
    "cut": lambda path: os.truncate(path, 5000),
    "flipped": flipped,
    "sparse": sparse,
    "sparse-after-the-header": sparse_after_the_header,
    "link-to-a-file": replaced(lambda path: path.symlink_to("/etc/passwd")),
    "link-to-itself": replaced(lambda path: path.symlink_to(path)),
    "a-pipe": replaced(os.mkfifo),
    "a-folder": replaced(Path.mkdir),
    "a-socket": replaced(bind),
    "log-is-a-folder": lambda path: path.with_name(f"{path.name}.wal").mkdir(),
    "log-is-a-link": lambda path: path.with_name(f"{path.name}.wal").symlink_to("/etc/passwd"),
    "log-is-a-pipe": lambda path: os.mkfifo(path.with_name(f"{path.name}.wal")),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_a_spoiled_file_is_the_branchs_fault_for_every_question(
    shop: Shop, spoil: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    branch = shop.branch("CREATE TABLE t AS SELECT 1 AS a")
    spoil(Path(branch.agent_dsn))
    with shop.adapter.open_reader(branch) as reader:
        for ask in (reader.relations, reader.shapes, lambda: reader.row_count(table("t"))):
            with pytest.raises(QueryError) as caught:
                ask()
            assert ".readers" not in caught.value.message
    shop.adapter.drop(branch.name)
    assert shop.adapter.list_marked() == ()
    # the next unit is read as if nothing had been
    with shop.reader("CREATE TABLE t AS SELECT 1 AS a") as reader:
        assert reader.row_count(table("t")) == 1


def test_a_log_of_another_database_is_replayed_or_ignored_but_harms_nobody(shop: Shop) -> None:
    branch = shop.branch("CREATE TABLE t AS SELECT 1 AS a")
    foreign_log(Path(branch.agent_dsn))
    with shop.adapter.open_reader(branch) as reader, suppress(QueryError):
        assert reader.row_count(table("t")) == 1
    with shop.reader("CREATE TABLE t AS SELECT 1 AS a") as reader:
        assert reader.row_count(table("t")) == 1


def test_a_file_without_rights_is_read_all_the_same(shop: Shop) -> None:
    branch = shop.branch("CREATE TABLE t AS SELECT 1 AS a")
    Path(branch.agent_dsn).chmod(0)
    with shop.adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 1


def test_a_folder_that_an_agent_removed_is_its_own_fault(shop: Shop) -> None:
    branch = shop.adapter.create("eval-1", MARK)
    path = Path(branch.agent_dsn)
    path.unlink()
    path.parent.rmdir()
    with shop.adapter.open_reader(branch) as reader, pytest.raises(QueryError, match="is gone"):
        reader.relations()
    shop.adapter.drop("eval-1")


def test_damaged_bytes_end_in_an_answer_or_in_a_query_error(shop: Shop) -> None:
    branch = shop.branch(
        "CREATE TABLE t AS SELECT range AS a, 'x' || range AS b FROM range(20000)",
        "CREATE VIEW v AS SELECT * FROM t",
    )
    path = Path(branch.agent_dsn)
    whole = path.read_bytes()
    chance = random.Random(7)
    answers = faults = 0
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(chance.choice([1, 5, 200])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
        with shop.adapter.open_reader(branch) as reader:
            try:
                assert reader.row_count(table("t")) >= 0
                reader.column_stats(table("t"), reader.columns(table("t")))
                answers += 1
            except QueryError:
                faults += 1
    assert answers + faults == 40
    assert faults > 0
