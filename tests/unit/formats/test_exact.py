"""JSON values -> exact numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from proctor_grader.formats.exact import (
    MAX_INTEGER_DIGITS,
    finite_number,
    integer,
    is_integer,
    plain_decimal,
    tolerance,
)
from proctor_grader.formats.strict_json import JsonNumber, JsonValue

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("value", "number"),
    [
        pytest.param(JsonNumber("1.2e9"), "1200000000", id="exponent"),
        pytest.param(JsonNumber("0.10"), "0.1", id="fraction"),
        pytest.param(JsonNumber("-0.0"), "0", id="minus-zero"),
        pytest.param(JsonNumber("0e99999999999999999999"), "0", id="zero-with-any-exponent"),
        pytest.param(JsonNumber("0.00e-99999999999999999999"), "0", id="zero-with-tiny-exponent"),
        pytest.param(JsonNumber("1e00000000000000000000005"), "100000", id="padded-exponent"),
        pytest.param(JsonNumber("9.99e307"), "9.99e307", id="largest"),
        pytest.param(JsonNumber("1e308"), None, id="too-large"),
        pytest.param(JsonNumber("-1e-308"), "-1e-308", id="smallest"),
        pytest.param(JsonNumber("9e-309"), None, id="too-small"),
        pytest.param(JsonNumber("1e99999999999999999999"), None, id="exponent-beyond-decimal"),
        pytest.param(JsonNumber("1e-99999999999999999999"), None, id="exponent-below-decimal"),
        pytest.param(JsonNumber("1e999999999"), None, id="nine-digit-exponent"),
        pytest.param(JsonNumber("9" * MILLION), None, id="a-million-digits"),
        pytest.param(JsonNumber("1" + "0" * MILLION + "e-1000000"), "1", id="long-but-one"),
        pytest.param(JsonNumber("1e" + "9" * MILLION), None, id="an-exponent-of-a-million-digits"),
        pytest.param(" +12.50\n", "12.5", id="trimmed-text"),
        pytest.param("1e3", None, id="text-with-exponent"),
        pytest.param(".5", None, id="text-without-integer-part"),
        pytest.param("5.", None, id="text-without-fraction"),
        pytest.param("1,000", None, id="text-with-comma"),
        pytest.param("٣", None, id="digit-of-another-script"),
        pytest.param("nan", None, id="nan"),
        pytest.param("", None, id="empty"),
        pytest.param("9" * MILLION, None, id="a-million-digits-as-text"),
        pytest.param(True, None, id="boolean"),
        pytest.param(None, None, id="null"),
        pytest.param([], None, id="list"),
        pytest.param({}, None, id="object"),
    ],
)
def test_finite_number(value: JsonValue, number: str | None) -> None:
    assert finite_number(value) == (None if number is None else Decimal(number))


def test_every_digit_is_kept() -> None:
    digits = "0.1234567890123456789012345678901234567890"
    assert str(finite_number(JsonNumber(digits))) == digits


def test_a_zero_of_a_million_digits_stays_short() -> None:
    assert len(str(finite_number(JsonNumber("0." + "0" * MILLION)))) < 1000


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (JsonNumber("-0"), Decimal(0)),
        (JsonNumber("3"), Decimal(3)),
        ("0.02", Decimal("0.02")),
        (JsonNumber("-0.01"), None),
        ("-1", None),
        (None, None),
    ],
)
def test_tolerance(value: JsonValue, number: Decimal | None) -> None:
    assert tolerance(value) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        pytest.param(JsonNumber("0"), 0, id="zero"),
        pytest.param(JsonNumber("-7"), -7, id="negative"),
        pytest.param(JsonNumber("1.0"), None, id="fraction"),
        pytest.param(JsonNumber("1e3"), None, id="exponent"),
        pytest.param(JsonNumber("1E0"), None, id="capital-exponent"),
        pytest.param("5", None, id="text"),
        pytest.param(True, None, id="boolean"),
        pytest.param(JsonNumber("1" * MAX_INTEGER_DIGITS), int("1" * 640), id="long"),
        pytest.param(JsonNumber("1" * MILLION), None, id="longer-than-any-python-converts"),
    ],
)
def test_integer(value: JsonValue, number: int | None) -> None:
    assert integer(value) == number


def test_is_integer_looks_at_the_text_alone() -> None:
    assert is_integer(JsonNumber("9" * MILLION))
    assert not is_integer(JsonNumber("5.0"))


def test_plain_decimal_is_not_trimmed() -> None:
    assert plain_decimal(" 5") is None
    assert plain_decimal("5\n") is None
