"""A branch's role reaches its branch and nothing else, or the branch is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proctor_grader.errors import BranchNotIsolated
from tests.conftest import SESSION, needed
from tests.integration.postgres.place import Place
from tests.services.part import POSTGRES
from tests.services.postgres import PostgresProcess, PostgresServer


@pytest.fixture(scope="module")
def stock_server(pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    """A server of this module alone: with an open base on it no test's branch is isolated."""
    needed(POSTGRES)
    process = PostgresProcess(pytestconfig.stash[SESSION].private_folder())
    process.start()
    yield process.server
    process.remove()


@pytest.fixture
def open_place(stock_server: PostgresServer) -> Iterator[Place]:
    """A base as it comes: PUBLIC may connect to it."""
    base = stock_server.make_base(closed_to_public=False)
    yield Place(base)
    stock_server.drop_base(base)


def run(place: Place, remedy: str) -> None:
    """Do what a message says."""
    with place.server.connect() as session:
        for statement in remedy.removeprefix("run: ").split(";"):
            if statement.strip():
                session.execute(statement.encode())


def test_open_base_is_refused_until_it_admits_nobody(open_place: Place) -> None:
    place = open_place
    with pytest.raises(BranchNotIsolated) as caught:
        place.create()
    assert caught.value.message == f"a branch's role could also connect to '{place.base.name}'"
    assert (
        caught.value.remedy == f'run: ALTER DATABASE "{place.base.name}" ALLOW_CONNECTIONS false;'
    )
    assert place.left() == []
    (shortfall,) = place.adapter.privileges()
    assert (shortfall.message, shortfall.fatal) == (caught.value.message, True)
    run(place, caught.value.remedy)
    assert place.adapter.privileges() == ()
    branch = place.create()
    assert branch.notes == ()
    place.do(branch.agent_dsn, "CREATE TABLE t (a integer)")
    place.adapter.drop(place.name)


def test_each_database_in_reach_is_named_with_statements_that_keep_the_admin_in(
    open_place: Place,
) -> None:
    place = open_place
    run(place, f"ALTER DATABASE {place.base.name} ALLOW_CONNECTIONS false")
    with place.server.connect() as session:
        session.execute('CREATE DATABASE "Sales ""EU"""')
        session.execute("CREATE TABLE people_work_here (a integer)")
    with pytest.raises(BranchNotIsolated) as caught:
        place.create()
    assert caught.value.message.endswith("could also connect to 'Sales \"EU\"', 'postgres'")
    admin = place.base.admin
    assert caught.value.remedy == (
        'run: REVOKE CONNECT ON DATABASE "Sales ""EU""" FROM PUBLIC;'
        f' GRANT CONNECT ON DATABASE "Sales ""EU""" TO "{admin}";'
        ' REVOKE CONNECT ON DATABASE "postgres" FROM PUBLIC;'
        f' GRANT CONNECT ON DATABASE "postgres" TO "{admin}";'
    )
    run(place, caught.value.remedy)
    place.create()
    place.adapter.drop(place.name)
    undo = 'DROP DATABASE "Sales ""EU"""; DROP TABLE people_work_here;'
    run(place, f"{undo} GRANT CONNECT ON DATABASE postgres TO PUBLIC")


def test_warn_makes_the_branch_and_notes_it(open_place: Place) -> None:
    place = open_place
    adapter = place.open_adapter(isolation="warn")
    (shortfall,) = adapter.privileges()
    assert shortfall.fatal is False
    branch = adapter.create(place.name, place.mark)
    (note,) = branch.notes
    assert f"could also connect to '{place.base.name}'" in note
    assert "ALLOW_CONNECTIONS false" in note
    place.do(place.elsewhere(branch, place.base.name), "SELECT lo_from_bytea(0, 'x')")
    adapter.drop(place.name)
    assert place.left() == []


def test_maintenance_database_in_which_everybody_may_create_is_not_tolerated(
    open_place: Place,
) -> None:
    place = open_place
    run(place, f"ALTER DATABASE {place.base.name} ALLOW_CONNECTIONS false")
    with place.server.connect() as session:
        session.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    with pytest.raises(BranchNotIsolated, match="could also connect to 'postgres'"):
        place.create()
    run(place, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")


def test_base_that_is_the_maintenance_database_is_not_tolerated(open_place: Place) -> None:
    place = open_place
    run(place, f"ALTER DATABASE {place.base.name} ALLOW_CONNECTIONS false")
    adapter = place.open_adapter(url=place.server.superuser_url)
    with pytest.raises(BranchNotIsolated, match="could also connect to 'postgres'"):
        adapter.create(place.name, place.mark)


def test_base_without_connections_works_and_its_clone_admits_them(place: Place) -> None:
    place.base.execute("CREATE TABLE t AS SELECT 1 AS a")
    with place.server.connect() as session:
        session.execute(f"ALTER DATABASE {place.base.name} ALLOW_CONNECTIONS false")
    assert place.adapter.privileges() == ()
    branch = place.create()
    place.do(branch.agent_dsn, "SELECT a FROM t")
    place.adapter.drop(place.name)
