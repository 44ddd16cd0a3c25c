"""What the admin or the server lacks is found beforehand and named with its remedy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from psycopg import sql

from proctor_grader.errors import BranchError, UserError, WarehouseError
from proctor_grader.warehouse.postgres import execute, open_base_reader
from tests.integration.postgres.place import Place


@pytest.mark.parametrize(
    ("loss", "message", "remedy"),
    [
        pytest.param(
            "ALTER ROLE {admin} NOCREATEDB",
            'role "{admin}" lacks CREATEDB',
            'ALTER ROLE "{admin}" CREATEDB;',
            id="no-createdb",
        ),
        pytest.param(
            "ALTER ROLE {admin} NOCREATEROLE",
            'role "{admin}" lacks CREATEROLE',
            'ALTER ROLE "{admin}" CREATEROLE;',
            id="no-createrole",
        ),
        pytest.param(
            "ALTER DATABASE {base} OWNER TO postgres",
            "base '{base}' belongs to role 'postgres', so \"{admin}\" may not clone it",
            'ALTER DATABASE "{base}" OWNER TO "{admin}";',
            id="base-of-somebody-else",
        ),
    ],
)
def test_missing_right_is_found_and_its_remedy_works(
    place: Place, loss: str, message: str, remedy: str
) -> None:
    names = {"admin": place.base.admin, "base": place.base.name}
    with place.server.connect() as session:
        session.execute(loss.format(**names).encode())
        (shortfall,) = place.adapter.privileges()
        assert (shortfall.message, shortfall.fatal) == (message.format(**names), True)
        assert shortfall.remedy == remedy.format(**names)
        with pytest.raises(BranchError, match="permission denied"):
            place.create()
        assert place.left() == []
        session.execute(shortfall.remedy.encode())
    assert place.adapter.privileges() == ()
    place.create()
    place.adapter.drop(place.name)


def test_admin_that_does_not_inherit_is_found(place: Place) -> None:
    with place.server.connect() as session:
        session.execute(f"ALTER ROLE {place.base.admin} NOINHERIT")
        # from 16 on every grant says whether it is inherited
        is_old = session.info.server_version < 160000
    told = [s.remedy for s in place.adapter.privileges() if "inherit" in s.message]
    assert told == ([f'ALTER ROLE "{place.base.admin}" INHERIT;'] if is_old else [])
    if not is_old:
        place.create()
        place.adapter.drop(place.name)


def test_superuser_as_admin_works(place: Place) -> None:
    url = place.server.url(place.base.name, "postgres", place.server.password)
    with place.server.connect(place.base.name) as session:
        session.execute("CREATE TABLE theirs AS SELECT 1 AS a")
    adapter = place.open_adapter(url)
    assert adapter.privileges() == ()
    branch = adapter.create(place.name, place.mark)
    place.do(branch.agent_dsn, "DROP TABLE theirs")
    adapter.drop(place.name)
    assert place.left() == []


@pytest.mark.parametrize(
    ("part", "other", "message"),
    [
        pytest.param("password", "wrong-password", "password authentication failed", id="password"),
        pytest.param("admin", "nobody", "authentication failed for user", id="user"),
        pytest.param("name", "no_such_base", "database 'no_such_base'", id="database"),
    ],
)
def test_wrong_url_is_the_users_fault(place: Place, part: str, other: str, message: str) -> None:
    url = place.base.url.replace(getattr(place.base, part), other)
    adapter = place.open_adapter(url)
    with pytest.raises(UserError, match=message) as caught:
        adapter.privileges()
    assert caught.value.remedy
    assert other not in str(caught.value) or part != "password"
    assert place.base.password not in str(caught.value)
    with pytest.raises(UserError):
        adapter.create(place.name, place.mark)
    assert place.left() == []


def test_fingerprint_of_a_base_that_admits_nobody_says_what_to_do(place: Place) -> None:
    with place.server.connect() as session:
        session.execute(f"ALTER DATABASE {place.base.name} ALLOW_CONNECTIONS false")
    with (
        pytest.raises(UserError, match="not currently accepting connections: take a clone"),
        open_base_reader(place.base.url),
    ):
        pass


def test_base_reader_sees_the_base_as_its_admin(place: Place) -> None:
    place.base.execute("CREATE TABLE t AS SELECT 1 AS a")
    with open_base_reader(place.base.url) as reader:
        assert [(s.name, s.row_count) for s in reader.shapes()] == [("t", 1)]


def test_server_that_is_down_may_come_back(private_place: Callable[..., Place]) -> None:
    place = private_place()
    branch = place.create()
    assert place.process is not None
    with place.adapter.open_reader(branch) as reader:
        place.process.stop()
        with pytest.raises(WarehouseError):
            reader.relations()
        for call in (
            place.adapter.privileges,
            place.adapter.list_marked,
            lambda: place.create("eval-x"),
            lambda: place.adapter.drop(place.name),
            lambda: place.adapter.fence(place.name),
            lambda: list(execute(branch.agent_dsn, ["SELECT 1"])),
            lambda: place.adapter.open_reader(branch).__enter__(),
            lambda: open_base_reader(place.base.url).__enter__(),
        ):
            with pytest.raises(WarehouseError) as caught:
                call()
            assert place.base.password not in str(caught.value)
            assert not any(secret in str(caught.value) for secret in branch.secrets)
        place.process.start()
        assert reader.relations() == ()
    place.adapter.drop(place.name)
    assert place.left() == []


def test_server_without_free_connections_is_a_passing_fault(
    private_place: Callable[..., Place],
) -> None:
    place = private_place(max_connections="6")
    with (
        place.session(place.base.url),
        place.session(place.base.url),
        place.session(place.base.url),
        pytest.raises(WarehouseError, match=r"connection slots|too many clients"),
    ):
        place.create()
    assert place.left() == []


def test_server_that_refuses_branch_roles_is_named(private_place: Callable[..., Place]) -> None:
    place = private_place()
    hba = place.server.data_dir / "pg_hba.conf"
    hba.write_text(f"host all postgres,{place.base.admin} 127.0.0.1/32 scram-sha-256\n")
    with place.server.connect() as session:
        session.execute("SELECT pg_reload_conf()")
    with pytest.raises(
        BranchError, match=r"does not let a branch's role in: .*no pg_hba.conf entry"
    ):
        place.create()
    assert place.left() == []


def test_names_and_passwords_of_any_characters(place: Place) -> None:
    admin, base, password = 'Ad "min"/@', 'My "Base" %/ü', "p@ss:w/rd?#%'\\"
    place.base.execute("CREATE TABLE t AS SELECT 1 AS a")
    with place.server.connect() as session:
        quoted = sql.Identifier(f"{place.name} {admin}"), sql.Identifier(f"{place.name} {base}")
        rename = sql.SQL("ALTER ROLE {} RENAME TO {}")
        session.execute(rename.format(sql.Identifier(place.base.admin), quoted[0]))
        secret = sql.SQL("ALTER ROLE {} PASSWORD {}")
        session.execute(secret.format(quoted[0], sql.Literal(password)))
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
        session.execute(rename.format(sql.Identifier(place.base.name), quoted[1]))
        url = place.server.url(f"{place.name} {base}", f"{place.name} {admin}", password)
        adapter = place.open_adapter(url)
        assert password not in adapter.location
        assert adapter.privileges() == ()
        branch = adapter.create(place.name, place.mark)
        place.do(branch.agent_dsn, "SELECT a FROM t", "DROP TABLE t")
        adapter.drop(place.name)
        with open_base_reader(url) as reader:
            assert [shape.name for shape in reader.shapes()] == ["t"]
        rename = sql.SQL("ALTER ROLE {} RENAME TO {}")
        session.execute(rename.format(quoted[0], sql.Identifier(place.base.admin)))
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
        session.execute(rename.format(quoted[1], sql.Identifier(place.base.name)))
