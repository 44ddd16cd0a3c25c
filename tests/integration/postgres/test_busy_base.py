"""A base that somebody works in is waited for; nobody's session is ended for a clone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from proctor_grader.errors import BaseBusy
from tests.integration.postgres.place import Place


def test_who_is_connected_is_named_and_stays_connected(place: Place) -> None:
    adapter = place.open_adapter(base_wait_seconds=0.2)
    url = f"{place.base.url}?application_name=dashboard"
    with place.session(url) as person:
        with pytest.raises(BaseBusy) as caught:
            adapter.create(place.name, place.mark)
        assert person.execute("SELECT 1").fetchone() == (1,)
        pid = person.info.backend_pid
    assert caught.value.message == (
        f"is in use by role '{place.base.admin}' as 'dashboard' (pid {pid}),"
        " so it can't be cloned (waited 0.2 s)"
    )
    assert caught.value.where == f"base '{place.base.name}'"
    assert "ALLOW_CONNECTIONS false" in caught.value.remedy
    assert place.left() == []


def test_a_superusers_session_is_named_too(place: Place) -> None:
    adapter = place.open_adapter(base_wait_seconds=0.0)
    with place.server.connect(place.base.name) as person:
        pid = person.info.backend_pid
        with pytest.raises(BaseBusy, match=rf"in use by role 'postgres' \(pid {pid}\), so"):
            adapter.create(place.name, place.mark)


def test_many_sessions_are_cut_short(place: Place) -> None:
    adapter = place.open_adapter(base_wait_seconds=0.0)
    people = [psycopg.connect(place.base.url) for _ in range(7)]
    with pytest.raises(BaseBusy, match=r"\(pid \d+\) and 2 more, so"):
        adapter.create(place.name, place.mark)
    for person in people:
        person.close()


def test_create_goes_on_when_the_base_is_free(place: Place) -> None:
    person = psycopg.connect(place.base.url)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(place.create)
        while not place.left():  # its roles are there: it waits for the base
            threading.Event().wait(0.01)
        assert not made.done()
        person.close()
        assert made.result().name == place.name
    place.adapter.drop(place.name)


def test_preflight_says_that_the_base_is_in_use(place: Place) -> None:
    with place.session(place.base.url):
        (shortfall,) = place.adapter.privileges()
    assert not shortfall.fatal
    assert f"base '{place.base.name}' is in use by role '{place.base.admin}'" in shortfall.message


def test_twenty_branches_at_once(place: Place) -> None:
    place.base.execute("CREATE TABLE t AS SELECT 1 AS a")
    names = [f"{place.name}-{i}" for i in range(20)]
    with ThreadPoolExecutor(20) as pool:
        branches = list(pool.map(place.create, names))
        for branch in branches:
            place.do(branch.agent_dsn, "INSERT INTO t VALUES (2)")
        assert [r.name for r in place.adapter.list_marked()] == sorted(names)
        list(pool.map(place.adapter.drop, names))
    assert place.left() == []


@pytest.mark.parametrize(("rows", "strategy"), [(20, "wal_log"), (20_000, "file_copy")])
def test_way_of_cloning_follows_the_bases_size(place: Place, rows: int, strategy: str) -> None:
    place.base.execute(
        f"CREATE TABLE t AS SELECT a, repeat('x', 900) AS s FROM generate_series(1, {rows}) a"
    )
    with place.server.connect() as session:
        session.execute(f"ALTER ROLE {place.base.admin} SET log_statement = 'ddl'")
    branch = place.create()
    with place.session(branch.agent_dsn) as session:
        assert session.execute("SELECT count(*) FROM t").fetchone() == (rows,)
    log = place.server.log_file.read_text()
    assert f'CREATE DATABASE "{place.name}" TEMPLATE "{place.base.name}"' in log
    assert f"ALLOW_CONNECTIONS false STRATEGY {strategy}\n" in log.partition(f'"{place.name}"')[2]
    place.adapter.drop(place.name)
