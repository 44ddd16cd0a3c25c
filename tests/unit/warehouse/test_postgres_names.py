"""Names of branches, roles and sessions never collide and are never cut by the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.errors import BranchError
from proctor_grader.warehouse.base import Mark
from proctor_grader.warehouse.postgres.names import (
    MAX_BYTES,
    branch_roles,
    check_name,
    name_of_owner,
    parse_mark,
    render_mark,
    session_name,
)

NAMES = st.from_regex(r"\A[a-z0-9-]{1,57}\Z")


@given(NAMES)
def test_role_names_fit_and_are_no_branch_names(name: str) -> None:
    check_name(name, has_database=True)
    roles = branch_roles(name).all
    assert len({name, *roles}) == 5
    assert all(len(role.encode()) <= MAX_BYTES for role in roles)
    for role in roles:
        with pytest.raises(BranchError):
            check_name(role, has_database=False)
    assert name_of_owner(roles[0]) == name
    assert [name_of_owner(role) for role in (name, *roles[1:])] == [None] * 4


@given(st.from_regex(r"\A[a-z0-9-]{1,63}\Z"), st.from_regex(r"\A[a-z0-9-]{1,63}\Z"))
def test_session_names_fit_and_tell_branches_apart(one: str, other: str) -> None:
    assert len(session_name(one)) <= MAX_BYTES
    assert (session_name(one) == session_name(other)) == (one == other)


def test_long_names_that_differ_at_the_end_have_different_sessions() -> None:
    assert session_name("a" * 62 + "b") != session_name("a" * 62 + "c")


@pytest.mark.parametrize(
    ("name", "has_database", "is_fine"),
    [
        ("a" * 57, True, True),
        ("a" * 58, True, False),
        ("a" * 63, False, True),
        ("a" * 64, False, False),
        ("a\n", False, False),
        ("ä", False, False),
    ],
)
def test_length_leaves_room_for_the_roles(name: str, has_database: bool, is_fine: bool) -> None:
    if is_fine:
        check_name(name, has_database=has_database)
        return
    with pytest.raises(BranchError, match="can't name a branch"):
        check_name(name, has_database=has_database)


@given(st.text(), st.text(), st.datetimes(timezones=st.just(UTC)))
def test_mark_comes_back_whole(installation: str, run: str, expires: datetime) -> None:
    mark = Mark(installation, run, expires)
    assert parse_mark(render_mark(mark)) == mark
    assert render_mark(mark).isascii()


@pytest.mark.parametrize(
    "comment",
    [
        None,
        "",
        "a role for people",
        "{}",
        "[]",
        "null",
        "1",
        '{"format": "proctor-branch-1"}',
        '{"format": "other", "installation": "a", "run": "b", "expires": "2031-01-01T00:00:00Z"}',
        '{"format": "proctor-branch-1", "installation": "a", "run": "b", "expires": "soon"}',
        '{"format": "proctor-branch-1", "installation": "a", "run": "b", "expires": 5}',
        '{"format": "proctor-branch-1", "installation": "a", "run": "b", "expires": "2031-01-01"}',
    ],
)
def test_any_other_comment_is_no_mark(comment: str | None) -> None:
    assert parse_mark(comment) is None


def test_mark_keeps_its_moment_in_any_zone() -> None:
    expires = datetime(2031, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    found = parse_mark(render_mark(Mark("a", "b", expires)))
    assert found is not None
    assert found.expires == expires
