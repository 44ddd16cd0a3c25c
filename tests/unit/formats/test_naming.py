"""The name of a set that gives none, from its git URL."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_grader.formats.naming import name_from_url
from tests.unit.formats.setfolder import read_cases

CASES = [case for case in read_cases("eval-json/vectors.json") if case["kind"] == "set_name"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    assert name_from_url(case["input"]["url"]) == case["expect"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        pytest.param("https://h/acme/x.git/?a=b/c#d/e", "x", id="slash-before-the-query"),
        pytest.param("https://h/acme/x.git#a?b", "x", id="question-mark-in-the-fragment"),
        pytest.param("https://h/x.git.git", "x.git", id="one-suffix-only"),
        pytest.param("git@h:team/x.git", "x", id="scp-with-a-path"),
        pytest.param("file:///srv/sets/x/", "x", id="file-url"),
        pytest.param("/srv/sets/x.git", "x", id="a-path"),
        pytest.param("https://user:secret@h", "h", id="no-password-in-a-name"),
        pytest.param("https://user:se@cret@h/x@1.git", "x@1", id="an-at-sign-in-the-name-stays"),
        pytest.param("", "", id="no-url"),
        pytest.param("https://h/.git", "", id="nothing-but-the-suffix"),
    ],
)
def test_name_from_url(url: str, name: str) -> None:
    assert name_from_url(url) == name
