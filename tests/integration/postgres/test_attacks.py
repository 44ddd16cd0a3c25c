"""What an agent may try against the branch, the server and the grader."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from proctor_grader.errors import QueryError
from proctor_grader.warehouse.base import Relation, RelationKind
from tests.integration.postgres.place import Place

REFUSED = [
    "ALTER DATABASE {db} IS_TEMPLATE true",
    "ALTER DATABASE {db} CONNECTION LIMIT 0",
    "ALTER DATABASE {db} ALLOW_CONNECTIONS false",
    "ALTER DATABASE {db} OWNER TO CURRENT_USER",
    "ALTER DATABASE {db} RENAME TO mine",
    "ALTER DATABASE {db} SET search_path = x",
    "COMMENT ON DATABASE {db} IS 'x'",
    "COMMENT ON ROLE {owner} IS 'x'",
    "COMMENT ON ROLE CURRENT_USER IS 'x'",
    "DROP DATABASE {base}",
    "CREATE DATABASE x",
    "CREATE ROLE x",
    "SET ROLE {owner}",
    "SET ROLE {reader}",
    "ALTER ROLE {reader} PASSWORD 'x'",
    "GRANT {agent} TO {admin}",
    "GRANT {owner} TO {agent}",
    "ALTER ROLE CURRENT_USER CONNECTION LIMIT 1000",
    "ALTER ROLE CURRENT_USER VALID UNTIL '2000-01-01'",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY (SELECT 1) TO '/tmp/x'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_terminate_backend({pid})",
    "CREATE EXTENSION file_fdw",
    "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p",
    "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION pg_catalog.now()",
]


def test_agent_is_refused_what_could_outlive_its_branch(place: Place) -> None:
    branch = place.create()
    with place.base.connect("postgres") as admin:
        names = {
            "db": f'"{place.name}"',
            "owner": f'"{place.name}_owner"',
            "agent": f'"{place.name}_agent"',
            "reader": f'"{place.name}_read"',
            "admin": place.base.admin,
            "base": place.base.name,
            "pid": admin.info.backend_pid,
        }
        statements = [statement.format(**names) for statement in REFUSED]
        errors = place.tell(branch.agent_dsn, *statements)
        assert admin.execute("SELECT 1").fetchone() == (1,)
    allowed = [text for text, error in zip(statements, errors, strict=True) if not error]
    assert allowed == []
    assert [record.mark for record in place.adapter.list_marked()] == [place.mark]
    place.adapter.drop(place.name)
    assert place.left() == []


def test_agent_lets_nobody_into_its_branch(place: Place) -> None:
    branch = place.create()
    place.tell(
        branch.agent_dsn,
        f'GRANT ALL ON DATABASE "{branch.name}" TO PUBLIC',  # "succeeds" with a warning
        f'GRANT CONNECT ON DATABASE "{branch.name}" TO {place.base.admin}',
    )
    other = place.create(f"{place.name}-2")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(place.elsewhere(other, branch.name))
    place.adapter.drop(branch.name)
    place.adapter.drop(other.name)


def test_names_and_passwords_are_in_no_log(place: Place) -> None:
    with place.server.connect() as session:
        session.execute(f"ALTER ROLE {place.base.admin} SET log_statement = 'all'")
    branch = place.create()
    place.adapter.drop(place.name)
    log = place.server.log_file.read_text()
    assert f'CREATE ROLE "{place.name}_agent"' in log
    assert not any(secret in log for secret in branch.secrets)


def test_row_security_is_an_error_or_bypassed_but_never_hides_rows(place: Place) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE TABLE own AS SELECT 1 AS a",
        "ALTER TABLE own ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE forced AS SELECT 1 AS a",
        "ALTER TABLE forced ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE forced FORCE ROW LEVEL SECURITY",
    )
    with place.adapter.open_reader(branch) as reader:
        assert reader.row_count(Relation("public", "own", RelationKind.TABLE)) == 1
        with pytest.raises(QueryError, match="row-level security policy"):
            reader.row_count(Relation("public", "forced", RelationKind.TABLE))
    place.adapter.drop(place.name)


def test_a_function_cannot_change_the_readers_settings_for_the_next_question(place: Place) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE FUNCTION evil() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM set_config('row_security', 'on', false);"
        " PERFORM set_config('search_path', 'evil', false);"
        " PERFORM set_config('statement_timeout', '0', false);"
        " PERFORM set_config('default_transaction_read_only', 'off', false);"
        " PERFORM set_config('client_encoding', 'LATIN1', false);"
        " PERFORM set_config('datestyle', 'German', false); RETURN 1; END $$",
        "CREATE VIEW v AS SELECT evil() AS a, 'é' AS e",
        "CREATE TABLE forced AS SELECT 1 AS a",
        "ALTER TABLE forced ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE forced FORCE ROW LEVEL SECURITY",
        "CREATE SCHEMA evil",
    )
    with place.adapter.open_reader(branch) as reader:
        assert reader.row_count(Relation("public", "v", RelationKind.VIEW)) == 1
        with pytest.raises(QueryError, match="row-level security policy"):
            reader.row_count(Relation("public", "forced", RelationKind.TABLE))
        assert [r.name for r in reader.relations() if r.is_default_schema] == ["forced", "v"]
    place.adapter.drop(place.name)


def test_shadowing_built_ins_changes_no_number(place: Place) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE TABLE t AS SELECT a, a::numeric AS n, a::text AS s FROM generate_series(1, 3) a",
        "CREATE FUNCTION zero(bigint, integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 9'",
        "CREATE AGGREGATE count(integer) (SFUNC = zero, STYPE = bigint, INITCOND = '0')",
        "CREATE AGGREGATE sum(integer) (SFUNC = zero, STYPE = bigint, INITCOND = '0')",
        "CREATE FUNCTION nine() RETURNS bigint LANGUAGE sql AS 'SELECT 9::bigint'",
        "CREATE FUNCTION same(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR = (LEFTARG = integer, RIGHTARG = integer, FUNCTION = same)",
        "CREATE TABLE pg_class (relname text)",
        "CREATE TABLE pg_attribute (attname text)",
        f'ALTER ROLE "{place.name}_agent" SET search_path = public, pg_catalog',
    )
    with place.adapter.open_reader(branch) as reader:
        table = Relation("public", "t", RelationKind.TABLE)
        assert reader.row_count(table) == 3
        assert reader.grain_counts(table, ["a"]).distinct == 3
        stats = reader.column_stats(table, reader.columns(table))
        assert {n: (s.nulls, s.sum) for n, s in stats.items()} == {
            "a": (0, "6"),
            "n": (0, "6"),
            "s": (0, None),
        }
        assert [r.name for r in reader.relations()] == ["pg_attribute", "pg_class", "t"]
    place.adapter.drop(place.name)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("INSERT INTO t VALUES (1)", "read-only transaction", id="writing"),
        pytest.param("SET TRANSACTION READ WRITE", "read-write mode", id="leaving-read-only"),
        pytest.param(
            "RAISE EXCEPTION 'gone' USING ERRCODE = '53200'", "gone", id="pretending-no-memory"
        ),
        pytest.param(
            "RAISE EXCEPTION 'gone' USING ERRCODE = '08006'", "gone", id="pretending-a-lost-line"
        ),
        pytest.param(
            "RAISE EXCEPTION 'gone' USING ERRCODE = '57P01'", "gone", id="pretending-shutdown"
        ),
        pytest.param(
            "PERFORM pg_terminate_backend(pg_backend_pid())",
            "ends the session that reads it",
            id="ending-the-readers-session",
        ),
    ],
)
def test_hostile_view_is_the_branchs_fault(place: Place, body: str, message: str) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE TABLE t (a integer)",
        f"CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN 'é'; END $$",
        "CREATE VIEW v AS SELECT f() AS a",
    )
    with place.adapter.open_reader(branch) as reader:
        view = Relation("public", "v", RelationKind.VIEW)
        with pytest.raises(QueryError, match=message):
            reader.grain_counts(view, ["a"])
        assert reader.row_count(Relation("public", "t", RelationKind.TABLE)) == 0
    place.adapter.drop(place.name)


def test_large_objects_in_the_maintenance_database_do_not_keep_the_role(
    place: Place,
) -> None:
    branch = place.create()
    outside = place.elsewhere(branch, "postgres")
    place.do(
        outside,
        "SELECT lo_from_bytea(0, 'x')",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
        "CREATE TEMP TABLE t (a integer)",
    )
    place.adapter.drop(place.name)
    assert place.left() == []


def test_rights_given_to_other_branches_roles_do_not_keep_them(place: Place) -> None:
    victim, branch = place.create(f"{place.name}-2"), place.create()
    place.do(
        branch.agent_dsn,
        "CREATE TABLE t (a integer)",
        *(
            f'GRANT SELECT ON t TO "{victim.name}{suffix}"'
            for suffix in ("_owner", "_agent", "_read")
        ),
    )
    place.adapter.drop(victim.name)
    assert [r.name for r in place.adapter.list_marked()] == [branch.name]
    place.do(branch.agent_dsn, "SELECT * FROM t")
    place.adapter.drop(branch.name)
    assert place.left() == []


def test_open_change_of_the_agents_own_role_does_not_block_the_drop(place: Place) -> None:
    branch = place.create()
    session = psycopg.connect(branch.agent_dsn)
    session.execute("ALTER ROLE CURRENT_USER PASSWORD 'mine'")
    session.execute("ALTER ROLE CURRENT_USER SET work_mem = '1MB'")
    place.adapter.drop(place.name)
    session.close()
    assert place.left() == []


def test_sessions_that_come_back_at_once_do_not_block_the_drop(place: Place) -> None:
    branch = place.create()
    stop = threading.Event()
    refused = threading.Event()

    def hammer() -> None:
        while not stop.is_set():
            try:
                with psycopg.connect(branch.agent_dsn, autocommit=True) as session:
                    session.execute("BEGIN")
                    session.execute("ALTER ROLE CURRENT_USER PASSWORD 'mine'")
                    session.execute("SELECT pg_sleep(60)")
            except psycopg.Error:
                refused.set()

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        place.adapter.drop(place.name)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert refused.is_set()
    assert place.left() == []


def test_prepared_transaction_does_not_block_the_drop(private_place: Callable[..., Place]) -> None:
    place = private_place(max_prepared_transactions="5")
    branch = place.create()
    outside = place.elsewhere(branch, "postgres")
    for dsn, gid in ((branch.agent_dsn, "here's one"), (outside, "there")):
        with place.session(dsn) as session:
            session.execute("BEGIN")
            if dsn == outside:
                session.execute("ALTER ROLE CURRENT_USER SET work_mem = '1MB'")
            session.execute("SELECT lo_from_bytea(0, 'x')")
            session.execute("PREPARE TRANSACTION '" + gid.replace("'", "''") + "'")
    place.adapter.drop(place.name)
    assert place.left() == []
    assert place.asked("SELECT gid FROM pg_prepared_xacts") == []


def test_agent_cannot_use_up_the_servers_connections(place: Place) -> None:
    branch = place.create()
    opened = [psycopg.connect(branch.agent_dsn) for _ in range(32)]
    with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
        psycopg.connect(branch.agent_dsn)
    for session in opened:
        session.close()
    place.adapter.drop(place.name)


def test_view_that_tells_the_grader_apart_is_named(place: Place) -> None:
    branch = place.create()
    place.do(
        branch.agent_dsn,
        "CREATE FUNCTION who() RETURNS text LANGUAGE sql AS 'SELECT session_user::text'",
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE VIEW inner_view AS SELECT a FROM t WHERE who() LIKE '%_read'",
        "CREATE VIEW v AS SELECT count(*) FROM inner_view",
        "CREATE MATERIALIZED VIEW mv AS SELECT a FROM t",
    )
    with place.adapter.open_reader(branch) as reader:
        by_name = {r.name: r for r in reader.relations()}
        behind = {name: reader.behind(one) for name, one in by_name.items()}  # type: ignore[attr-defined]  # beyond the protocol
    assert behind == {
        "t": (),
        "inner_view": ("function public.who()", "view public.inner_view"),
        "v": ("function public.who()", "view public.inner_view", "view public.v"),
        "mv": ("materialized view public.mv",),
    }
    place.adapter.drop(place.name)
