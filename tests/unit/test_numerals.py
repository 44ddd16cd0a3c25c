"""The number reader: spec/numbers.md by its case files; here what a case file cannot say."""

from __future__ import annotations

import decimal
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from proctor_grader.numerals import SkipKind, extract_numbers, render_decimal

CASES = Path(__file__).parents[1] / "cases"


def cases_of(name: str) -> list[Any]:
    cases = json.loads((CASES / name).read_text(encoding="utf-8"), parse_float=Decimal)
    return [pytest.param(case, id=case["id"]) for case in cases]


def text_of(case: dict[str, Any]) -> str:
    if "text" in case:
        return str(case["text"])
    return "".join(piece * times for piece, times in case["build"])


def skipped_in(text: str) -> list[tuple[str, SkipKind]]:
    return [(token.text, token.kind) for token in extract_numbers(text).skipped]


def texts_in(text: str) -> list[str]:
    return [number.text for number in extract_numbers(text).numbers]


@pytest.mark.parametrize("case", cases_of("numbers.json") + cases_of("numbers-more.json"))
def test_reads_the_numbers_of_the_case(case: dict[str, Any]) -> None:
    read = extract_numbers(text_of(case))
    if "numbers" in case:
        assert list(read.values) == [Decimal(number) for number in case["numbers"]], case["why"]
    else:
        ends = (read.values[0], read.values[-1])
        assert len(read.values) == case["count"], case["why"]
        assert ends == (Decimal(case["first"]), Decimal(case["last"])), case["why"]
    assert read.truncated == case.get("truncated", False), case["why"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("it is -$5", ["-$5"], id="sign-and-currency-belong-to-it"),
        pytest.param("USD 5 or US$-6", ["USD 5", "US$-6"], id="currency-before-the-sign-too"),
        pytest.param("+5 +$5", ["5", "$5"], id="a-plus-has-no-effect"),
        pytest.param("--5 a –5", ["5", "–5"], id="only-the-sign-that-counts"),
        pytest.param("5% 5 €", ["5", "5"], id="no-percent-sign-and-no-currency-after-it"),
        pytest.param("5kg 5 kg", ["5kg", "5"], id="a-glued-unit-belongs-to-it"),
        pytest.param("_5kg_", ["5kg"], id="emphasis-does-not-belong-to-it"),
        pytest.param("1.5e3 2 × 10^3", ["1.5e3", "2 × 10^3"], id="exponents-belong-to-it"),
        pytest.param("**5** million!", ["5** million"], id="a-magnitude-and-its-gap-belong-to-it"),
        pytest.param("2 Mrd. €", ["2 Mrd."], id="so-does-the-dot-of-mrd"),
        pytest.param("$1,2,3k", ["$1", "2", "3k"], id="parts-have-their-own-text"),
        pytest.param("$3-4 million", ["$3", "4 million"], id="the-lower-end-has-only-its-own-text"),
        pytest.param("TOTAL$5", ["$5"], id="more-than-three-capitals-are-a-word"),
        pytest.param("5€ 6", ["5", "6"], id="a-sign-glued-to-a-number-is-not-the-next-ones"),
    ],
)
def test_text_of_a_number_is_its_span(text: str, expected: list[str]) -> None:
    assert texts_in(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1. a\n2. b", [("1.", "list number"), ("2.", "list number")], id="list"),
        pytest.param("at 9:30 pm", [("9:30 pm", "clock time")], id="clock"),
        pytest.param("R^2", [("R^2", "exponent of a name")], id="exponent-of-a-name"),
        pytest.param("5, fct_2024", [("fct_2024", "glued to a word")], id="glued"),
        pytest.param("us-east-1", [("us-east-1", "hyphenated to a word")], id="hyphenated"),
        pytest.param(
            "550e8400-e29b-41d4-a716-446655440000",
            [("550e8400-e29b-41d4-a716-446655440000", "UUID")],
            id="uuid",
        ),
        pytest.param(
            "2024-01-15T10:30:00Z", [("2024-01-15T10:30:00Z", "dash chain")], id="iso-date"
        ),
        pytest.param("in 2020-01.", [("2020-01", "year and month")], id="year-month"),
        pytest.param("1/2/2024", [("1/2/2024", "date with slashes")], id="slash-date"),
        pytest.param("s3x://b/7 6", [("s3x", "glued to a word"), ("://b/7", "URL")], id="url"),
        pytest.param("4x4.5", [("4x4.5", "mixed token")], id="mixed"),
        pytest.param(
            "0xFF 4095fed", [("0xFF", "hexadecimal"), ("4095fed", "hexadecimal")], id="hex"
        ),
        pytest.param("1.2.3.400", [("1.2.3.400", SkipKind.VERSION.value)], id="version"),
        pytest.param("9,1.2.3", [("1.2.3", SkipKind.VERSION.value)], id="version-in-a-split-run"),
        pytest.param("192.168.100.200", [("192.168.100.200", "IPv4 address")], id="address"),
        pytest.param("$2024_01", [("2024_01", "identifier")], id="identifier"),
        pytest.param("9" * 101, [("9" * 101, "more than 100 digits")], id="too-long"),
        pytest.param("2 × 10^31", [("2 × 10^31", "exponent out of range")], id="exponent"),
    ],
)
def test_skipped_token_says_what_it_is(text: str, expected: list[tuple[str, str]]) -> None:
    assert skipped_in(text) == expected


def test_only_the_first_skipped_tokens_are_kept() -> None:
    read = extract_numbers("a1 " * 10_001 + "7")
    assert len(read.skipped) == 10_000
    assert list(read.values) == [Decimal(7)]
    assert not read.truncated


@pytest.mark.parametrize(
    "context",
    [
        pytest.param(decimal.Context(prec=1), id="one-digit"),
        pytest.param(
            decimal.Context(prec=2, Emax=1, Emin=-1, traps=list(decimal.Context().flags)),
            id="all-signals-trapped",
        ),
    ],
)
def test_ambient_decimal_context_changes_nothing(context: decimal.Context) -> None:
    text = "-$1,234,567,890,123,456,789.125 3-4.5 million 1e30 1e-30 " + "8" * 100
    expected = [(str(value), value.as_tuple()) for value in extract_numbers(text).values]
    with decimal.localcontext(context):
        read = extract_numbers(text).values
        assert [(str(value), value.as_tuple()) for value in read] == expected
        assert render_decimal(read[0]) == "-1234567890123456789.125"


def test_zero_has_no_sign() -> None:
    (value,) = extract_numbers("-0.00").values
    assert str(value) == "0"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("-0.000", "0"),
        ("0E-40", "0"),
        ("1.500", "1.5"),
        ("100", "100"),
        ("1E+3", "1000"),
        ("-12.50E+1", "-125"),
        ("1E-10", "0.0000000001"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
    ],
)
def test_renders_a_plain_decimal(value: str, expected: str) -> None:
    assert render_decimal(Decimal(value)) == expected


def test_is_pure_of_clock_system_and_logging() -> None:
    """The package's own modules import nothing that could make a result depend on the day."""
    code = (
        "import sys; before = set(sys.modules); import proctor_grader.numerals as n;"
        "names = {m for k, v in sys.modules.items() if k.startswith('proctor_grader.numerals')"
        " for m in vars(v)};"
        "print(sorted(names & {'os', 'time', 'random', 'logging', 'asyncio', 'datetime'}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(CASES.parents[1] / "grader" / "src")},
    )
    assert result.stdout.strip() == "[]"
