"""JSON as the eval-json format demands it."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_grader.formats.strict_json import (
    MAX_DEPTH,
    InvalidJsonError,
    JsonNumber,
    parse_json,
    type_name,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param('"a"', "a", id="string"),
        pytest.param(' \t\r\n{"a" : [ true , null ] } \n', {"a": [True, None]}, id="white-space"),
        pytest.param("1.50", JsonNumber("1.50"), id="number-keeps-its-zeros"),
        pytest.param("-0", JsonNumber("-0"), id="number-keeps-its-sign"),
        pytest.param("1E+07", JsonNumber("1E+07"), id="number-keeps-its-exponent"),
        pytest.param(r'"\ud83d\udea2 \u0041"', "🚢 A", id="escapes-and-a-pair"),
        pytest.param(r'"\\ud800"', r"\ud800", id="backslash-before-u-is-text"),
        pytest.param("[" * MAX_DEPTH + "]" * MAX_DEPTH, None, id="deepest-nesting"),
    ],
)
def test_text_that_is_json(text: str, value: Any) -> None:
    parsed = parse_json(text)
    if value is not None:
        assert parsed == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "expecting value (line 1, column 1)", id="empty"),
        pytest.param('{\n"a": }', "expecting value (line 2, column 6)", id="place-is-told"),
        pytest.param("1 2", "extra data", id="text-after-the-value"),
        pytest.param("[NaN]", "NaN is no JSON number", id="nan"),
        pytest.param("-Infinity", "-Infinity is no JSON number", id="minus-infinity"),
        pytest.param('{"a":{"b":1,"b":1}}', 'duplicate key "b"', id="duplicate-key"),
        pytest.param(r'{"\ud800":1,"\ud800":2}', 'duplicate key "\\ud800"', id="odd-duplicate"),
        pytest.param(r'["\ud800"]', "unpaired surrogate", id="high-surrogate"),
        pytest.param(r'{"\uDC00":1}', "unpaired surrogate", id="low-surrogate-in-a-key"),
        pytest.param(r'{"a":{"b":["\udfffx"]}}', "unpaired surrogate", id="deep-surrogate"),
        pytest.param("[" * 101 + "]" * 101, "more than 100 nested levels", id="too-deep"),
        pytest.param("[" * 200_000, "more than 100 nested levels", id="far-too-deep"),
        pytest.param('{"a":' * 200_000, "more than 100 nested levels", id="far-too-deep-objects"),
        pytest.param('"\x00"', "invalid control character", id="control-character"),
        pytest.param('"\\u 123"', "invalid", id="blank-in-an-escape"),
        pytest.param("\u0661", "expecting value", id="digit-of-another-script"),
        pytest.param("1\u00a0", "extra data", id="white-space-json-has-not"),
    ],
)
def test_text_that_is_no_json(text: str, reason: str) -> None:
    with pytest.raises(InvalidJsonError) as caught:
        parse_json(text)
    assert reason in str(caught.value)
    str(caught.value).encode()  # can be shown


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('""', "string"),
        ("1", "number"),
        ("[]", "list"),
        ("{}", "object"),
        ("true", "boolean"),
        ("null", "null"),
    ],
)
def test_type_names(text: str, name: str) -> None:
    assert type_name(parse_json(text)) == name
