"""Whatever is killed at whatever moment: what is left carries the mark, and goes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from proctor_grader.errors import BranchError, ProctorError, UserError, WarehouseError
from proctor_grader.warehouse.base import Mark
from proctor_grader.warehouse.postgres.session import LOCK_TIMEOUT_SECONDS
from tests.integration.postgres.place import EXPIRES, Place

CRASHER = Path(__file__).with_name("crasher.py")


def settle(place: Place) -> None:
    """Wait until the server has noticed that killed clients are gone."""
    query = "SELECT pid FROM pg_stat_activity WHERE usename = %(n)s"
    while place.asked(query, n=place.base.admin):
        threading.Event().wait(0.02)


@pytest.mark.parametrize(
    ("what", "at_least"), [("create", 15), ("shared", 16), ("grant", 3), ("drop", 7)]
)
def test_killed_after_every_statement(place: Place, what: str, at_least: int) -> None:
    place.base.execute("CREATE TABLE t AS SELECT 1 AS a")
    if what == "grant":
        place.adapter.create_shared(f"{place.name}-shared", place.mark)
    ran = subprocess.run(
        [sys.executable, CRASHER, place.base.url, place.mark.installation, place.name, what],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    killed = ran.stdout.split()
    assert len(killed) >= at_least
    settle(place)
    records = place.adapter.list_marked()
    assert not any(record.busy for record in records)
    marked = {record.name for record in records}
    left = {name for name in killed if place_has(place, name)}
    assert left
    assert left <= marked
    for name in marked:
        place.adapter.drop(name)
    assert place.adapter.list_marked() == ()
    assert place.left() == []


def place_has(place: Place, name: str) -> bool:
    """Whether a database or role of exactly this branch is left."""
    names = {name, *(f"{name}{suffix}" for suffix in ("_owner", "_agent", "_read", "_units"))}
    return not names.isdisjoint(place.left())


MAKE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from proctor_grader.warehouse.base import AdapterOptions, Mark
from proctor_grader.warehouse.postgres import open_adapter
url, installation, name = sys.argv[1:]
mark = Mark(installation, "run-1", datetime(2031, 2, 3, tzinfo=UTC))
open_adapter(url, AdapterOptions(installation, Path())).create(name, mark)
"""


def test_creation_that_lost_its_client_makes_no_database(place: Place) -> None:
    creating = "SELECT pid FROM pg_stat_activity WHERE query ^@ %(q)s AND state = 'active'"
    arguments = [place.base.url, place.mark.installation, place.name]
    path = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    with place.server.connect() as holder, holder.transaction():
        holder.execute("LOCK TABLE pg_database IN SHARE MODE")  # keeps CREATE DATABASE waiting
        process = subprocess.Popen([sys.executable, "-c", MAKE, *arguments], env=path)
        while not place.asked(creating, q=f'CREATE DATABASE "{place.name}"'):
            assert process.poll() is None
        (record,) = place.adapter.list_marked()
        assert (record.name, record.busy) == (place.name, True)
        with pytest.raises(WarehouseError, match="is being made by another process right now"):
            place.create()
        process.kill()
        process.wait()
        killed_at = time.monotonic()
        settle(place)
        # by itself, and not by the time limit on waiting for a lock
        assert time.monotonic() - killed_at < LOCK_TIMEOUT_SECONDS - 1
    assert place.name not in place.left()
    (record,) = place.adapter.list_marked()
    assert (record.name, record.busy) == (place.name, False)
    place.adapter.drop(place.name)
    assert place.left() == []


def test_drop_that_was_interrupted_is_finished(place: Place) -> None:
    place.create()
    with place.server.connect() as session:
        session.execute("UPDATE pg_database SET datconnlimit = -2 WHERE datname = %s", [place.name])
    assert [record.name for record in place.adapter.list_marked()] == [place.name]
    place.adapter.drop(place.name)
    assert place.left() == []


def test_create_over_an_interrupted_drop(place: Place) -> None:
    place.create()
    with place.server.connect() as session:
        session.execute("UPDATE pg_database SET datconnlimit = -2 WHERE datname = %s", [place.name])
    branch = place.create()
    place.do(branch.agent_dsn, "CREATE TABLE t (a integer)")
    place.adapter.drop(place.name)


def test_many_drops_at_once(place: Place) -> None:
    branch = place.create()
    others = [psycopg.connect(branch.agent_dsn) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(place.adapter.drop, [place.name] * 8))
    for session in others:
        session.close()
    assert place.left() == []


def test_create_and_drop_at_once_leave_nothing(place: Place) -> None:
    def sweep() -> None:
        for _ in range(6):
            place.adapter.drop(place.name)

    def make() -> None:
        for _ in range(3):
            try:
                place.create()
            except ProctorError:
                continue  # swept away while it was made

    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(sweep), pool.submit(make), pool.submit(sweep), pool.submit(make)]:
            work.result()
    place.adapter.drop(place.name)
    assert place.left() == []


def test_same_branch_made_twice_at_once_is_made_once(place: Place) -> None:
    start = threading.Barrier(2)

    def make() -> str:
        start.wait()
        try:
            return place.create().agent_dsn
        except WarehouseError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        results = [future.result() for future in [pool.submit(make), pool.submit(make)]]
    made = [text for text in results if text.startswith("postgresql://")]
    refused = [text for text in results if "being made by another process" in text]
    assert len(made) == 1
    assert len(refused) == 1
    place.do(made[0], "CREATE TABLE t (a integer)")
    place.adapter.drop(place.name)
    assert place.left() == []


def test_stranger_in_a_branch_is_named_and_not_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor_grader.warehouse.postgres.removal.REMOVAL_SECONDS", 0.1)
    place.create()
    with place.server.connect(place.name) as person:
        pid = person.info.backend_pid
        with pytest.raises(WarehouseError, match=rf"in use by role 'postgres' \(pid {pid}\)"):
            place.adapter.drop(place.name)
        assert person.execute("SELECT 1").fetchone() == (1,)
    place.adapter.drop(place.name)
    assert place.left() == []


def test_template_mark_does_not_keep_a_branch(place: Place) -> None:
    place.create()
    with place.server.connect() as session:
        session.execute(f'ALTER DATABASE "{place.name}" IS_TEMPLATE true')
    place.adapter.drop(place.name)
    assert place.left() == []


@pytest.mark.parametrize(
    "made",
    [
        pytest.param('CREATE DATABASE "{name}"', id="database"),
        pytest.param('CREATE ROLE "{name}"', id="role-of-that-name"),
        pytest.param('CREATE ROLE "{name}_owner"', id="owner-role-without-mark"),
        pytest.param('CREATE ROLE "{name}_agent"', id="agent-role-alone"),
    ],
)
def test_what_only_looks_like_ours_is_left_alone(place: Place, made: str) -> None:
    with place.server.connect() as session:
        session.execute(made.format(name=place.name).encode())
    before = place.left()
    assert place.adapter.list_marked() == ()
    for call in (place.create, place.adapter.drop, place.adapter.fence):
        with pytest.raises(BranchError, match="carries no mark of this installation"):
            call(place.name)
    assert place.left() == before
    with place.server.connect() as session:
        kind = "DATABASE" if made.startswith("CREATE DATABASE") else "ROLE"
        session.execute(f'DROP {kind} "{before[0]}"')


def test_database_of_a_stranger_beside_our_marked_roles_is_left_alone(place: Place) -> None:
    place.create()
    with place.server.connect() as session:
        session.execute(f'ALTER DATABASE "{place.name}" OWNER TO {place.base.admin}')
        with pytest.raises(BranchError, match=f"database '{place.name}' carries no mark"):
            place.adapter.drop(place.name)
        session.execute(f'ALTER DATABASE "{place.name}" OWNER TO "{place.name}_owner"')
    place.adapter.drop(place.name)


@pytest.mark.parametrize(
    "comment",
    ["", "x", "{", "{}", "[]", "null", '{"format": "proctor-branch-1"}', "{" * 100_000],
)
def test_comment_that_is_no_mark_is_nobodys(place: Place, comment: str) -> None:
    with place.server.connect() as session:
        session.execute(f'CREATE ROLE "{place.name}_owner"')
        session.execute(f"COMMENT ON ROLE \"{place.name}_owner\" IS '{comment}'")
        assert place.adapter.list_marked() == ()
        with pytest.raises(BranchError):
            place.adapter.drop(place.name)
        session.execute(f'DROP ROLE "{place.name}_owner"')


def test_an_agent_cannot_make_branches_look_busy(place: Place) -> None:
    branch = place.create()
    with place.session(branch.agent_dsn) as session:
        session.execute(f"SET application_name = 'proctor:{place.name}'")
        (record,) = place.adapter.list_marked()
        assert record.busy is False
    place.adapter.drop(place.name)


def test_creation_that_fails_half_way_cleans_up(place: Place) -> None:
    adapter = place.open_adapter(place.base.url.replace(place.base.name, "no_such_base"))
    with pytest.raises(UserError, match='template database "no_such_base" does not exist'):
        adapter.create(place.name, place.mark)
    assert place.left() == []


def test_mark_that_would_not_be_found_again_is_refused(place: Place) -> None:
    with pytest.raises(ValueError, match="own installation"):
        place.adapter.create(place.name, Mark("other", "run-1", EXPIRES))
    naive = Mark(place.mark.installation, "run-1", EXPIRES.replace(tzinfo=None))
    with pytest.raises(ValueError, match="time zone"):
        place.adapter.create(place.name, naive)


def test_dependent_error_of_roles_is_told(place: Place) -> None:
    place.create()
    with place.server.connect() as session:
        session.execute(f'CREATE DATABASE "{place.name}-kept" OWNER "{place.name}_agent"')
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("proctor_grader.warehouse.postgres.removal.REMOVAL_SECONDS", 0.1)
            with pytest.raises(WarehouseError, match=f"owner of database {place.name}-kept"):
                place.adapter.drop(place.name)
        session.execute(f'DROP DATABASE "{place.name}-kept"')
    place.adapter.drop(place.name)
    assert place.left() == []


def test_grant_on_a_shared_branch_that_is_gone_is_refused(place: Place) -> None:
    shared = place.create_shared()
    place.adapter.drop(place.name)
    with pytest.raises(BranchError, match=f'role "{place.name}_units" does not exist'):
        place.grant(shared, "1")
    assert place.left() == []
