"""URLs of a base are read strictly, and those of branches say no more than they must."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from proctor_grader.errors import UserError
from proctor_grader.warehouse.postgres.url import parse_url

SECRET = "tops3cret-word"


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("postgresql://u:pw@h:5433/b", "postgresql://u@h:5433/b"),
        ("postgres://u@h/b", "postgresql://u@h:5432/b"),
        ("postgresql://h/b?sslmode=require", "postgresql://h:5432/b"),
        ("postgresql:///b", "postgresql://localhost:5432/b"),
        ("postgresql://u:pw@[::1]:1/b", "postgresql://u@[::1]:1/b"),
        ("postgresql://a%40b:p%2Fw@h/My%20%22Base%22", "postgresql://a%40b@h:5432/My%20%22Base%22"),
        ("postgresql:///b?host=/run/postgresql", "postgresql://%2Frun%2Fpostgresql:5432/b"),
        ("postgresql:///b?hostaddr=127.0.0.1", "postgresql://127.0.0.1:5432/b"),
    ],
)
def test_location_names_the_base_without_password(url: str, location: str) -> None:
    target = parse_url(url)
    assert target.location == location
    assert "pw" not in repr(target)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param(f"mysql://u:{SECRET}@h/b", "names no PostgreSQL server", id="other-engine"),
        pytest.param(f"postgresql://u:{SECRET}@h", "names no database", id="no-database"),
        pytest.param(f"postgresql://u:{SECRET}@h/", "names no database", id="empty-database"),
        pytest.param(f"postgresql://u:{SECRET}@x@h/b", "more than one '@'", id="at-sign"),
        pytest.param(f"postgresql://u:{SECRET}%zz@h/b", "is malformed", id="percent-encoding"),
        pytest.param(f"postgresql://u:{SECRET}@h/b?{SECRET}=1", "is malformed", id="parameter"),
        pytest.param(f"postgresql://u:{SECRET}@h1,h2/b", "more than one host", id="two-hosts"),
    ],
)
def test_malformed_url_is_refused_without_quoting_it(url: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_url(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("query", "portable", "whole"),
    [
        pytest.param("", {}, {}, id="plain"),
        pytest.param("sslmode=require", {"sslmode": "require"}, {"sslmode": "require"}, id="tls"),
        pytest.param(
            "sslmode=verify-full&sslrootcert=/etc/ca.crt",
            {"sslmode": "require"},
            {"sslmode": "verify-full", "sslrootcert": "/etc/ca.crt"},
            id="authority-in-a-file",
        ),
        pytest.param(
            "sslmode=verify-full&sslrootcert=system",
            {"sslmode": "verify-full", "sslrootcert": "system"},
            {"sslmode": "verify-full", "sslrootcert": "system"},
            id="authorities-of-the-system",
        ),
        pytest.param(
            "sslmode=require&sslcert=/c&sslkey=/k&application_name=x&options=-c%20a%3Db",
            {"sslmode": "require"},
            {"sslmode": "require"},
            id="what-is-the-admins-own",
        ),
    ],
)
def test_branch_url_keeps_the_way_to_the_server_only(
    query: str, portable: dict[str, str], whole: dict[str, str]
) -> None:
    target = parse_url(f"postgresql://admin:{SECRET}@h:1/base?{query}")
    for expected, is_portable in ((portable, True), (whole, False)):
        url = target.branch_url('d b"', "r/ole", "p@ss:w/rd?#%", portable=is_portable)
        assert conninfo_to_dict(url) == expected | {
            "host": "h",
            "port": "1",
            "dbname": 'd b"',
            "user": "r/ole",
            "password": "p@ss:w/rd?#%",
        }
        assert SECRET not in url
