"""The real parts do what the tests that use them rely on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tests.services.postgres import PostgresBase, PostgresProcess, PostgresServer
from tests.services.s3 import S3Bucket, S3Process

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_admin_owns_its_base_and_is_no_superuser(postgres_base: PostgresBase) -> None:
    with postgres_base.connect() as session:
        role = session.execute(
            "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolcanlogin, datname"
            " FROM pg_roles JOIN pg_database ON datdba = pg_roles.oid"
            " WHERE rolname = current_user AND datname = current_database()"
        ).fetchone()
    assert role == (postgres_base.admin, False, True, True, True, postgres_base.name)


def test_admin_makes_databases_and_roles(postgres_base: PostgresBase) -> None:
    postgres_base.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1), (2)")
    copy = f"{postgres_base.name}_copy"
    with postgres_base.connect("postgres") as session:
        session.execute(f"CREATE ROLE {copy}_owner")
        session.execute(f"GRANT {copy}_owner TO {postgres_base.admin}")
        create = f"CREATE DATABASE {copy} TEMPLATE {postgres_base.name} OWNER {copy}_owner"
        session.execute(create)
    with postgres_base.connect(copy) as session:
        assert session.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_drop_base_takes_what_the_admin_made_along(postgres_server: PostgresServer) -> None:
    base = postgres_server.make_base()
    with base.connect("postgres") as session:
        session.execute(f"CREATE ROLE {base.name}_role")
        session.execute(f"GRANT {base.name}_role TO {base.admin}")
        session.execute(f"CREATE DATABASE {base.name}_left OWNER {base.name}_role")
    postgres_server.drop_base(base)
    with postgres_server.connect() as session:
        left = session.execute(
            "SELECT datname FROM pg_database WHERE datname ^@ %(n)s"
            " UNION SELECT rolname FROM pg_roles WHERE rolname ^@ %(n)s OR rolname = %(a)s",
            {"n": base.name, "a": base.admin},
        ).fetchall()
    assert left == []


def test_base_is_closed_to_other_admins(
    postgres_server: PostgresServer, postgres_base: PostgresBase
) -> None:
    stranger = postgres_server.make_base()
    try:
        with (
            pytest.raises(psycopg.OperationalError, match="permission denied for database"),
            stranger.connect(postgres_base.name),
        ):
            pass
    finally:
        postgres_server.drop_base(stranger)


def test_wrong_password_is_refused(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("postgres", "postgres", "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url)


def test_private_postgres_restarts_with_port_and_data(
    private_postgres: Callable[..., PostgresProcess],
) -> None:
    process = private_postgres(max_connections="20")
    base = process.server.make_base("CREATE TABLE t AS SELECT 1 AS a")
    process.stop()
    with pytest.raises(psycopg.OperationalError), base.connect():
        pass
    process.start()
    with base.connect() as session:
        assert session.execute("SELECT a FROM t").fetchone() == (1,)
        assert session.execute("SHOW max_connections").fetchone() == ("20",)
    process.kill()
    with pytest.raises(psycopg.OperationalError), base.connect():
        pass


def test_object_is_written_once_only(s3_bucket: S3Bucket) -> None:
    client = s3_bucket.server.client()
    put = {"Bucket": s3_bucket.name, "Key": "runs/a b/ü.json", "IfNoneMatch": "*"}
    client.put_object(**put, Body=b"first")
    with pytest.raises(ClientError) as refused:
        client.put_object(**put, Body=b"second")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    read = client.get_object(Bucket=s3_bucket.name, Key="runs/a b/ü.json")["Body"].read()
    assert read == b"first"
    assert s3_bucket.keys("runs/") == ["runs/a b/ü.json"]
    client.close()


def test_private_s3_comes_back_with_its_objects(private_s3: Callable[[], S3Process]) -> None:
    process = private_s3()
    bucket = process.server.make_bucket()
    client = process.server.client()
    client.put_object(Bucket=bucket.name, Key="k", Body=b"v")
    process.stop()
    with pytest.raises(EndpointConnectionError):
        client.get_object(Bucket=bucket.name, Key="k")
    process.start()
    assert client.get_object(Bucket=bucket.name, Key="k")["Body"].read() == b"v"
    client.close()


def test_browser_shows_a_file_page(browser_page: Page, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>Report</title><h1>12 of 16 passed</h1>")
    browser_page.goto(page.as_uri())
    picture = browser_page.screenshot(path=tmp_path / "page.png")
    assert browser_page.title() == "Report"
    assert browser_page.get_by_role("heading").inner_text() == "12 of 16 passed"
    assert picture.startswith(b"\x89PNG")
