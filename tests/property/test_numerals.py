"""The number reader on any text: what must hold whatever an agent writes."""

from __future__ import annotations

import re
import sys
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from proctor_grader.numerals import Numeral, Skipped, extract_numbers, render_decimal

PIECES = (
    *("1", "12", "123", "000", "2024", "01", "5", "10", "1,234", "1.5", "0.5", "٣", "９"),
    *("-", "‑", "–", "−", "—", "--", "/", ":", "^", ".", "..", ",", "'", "’", "_", "__", "+"),
    *(" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u202f", "\u2003", "\u2028"),
    *("$", "€", "US$", "\\$", "USD", "USD ", "Rs", "EUR", "%", " %", "¢"),
    *("k", "m", "M", "B", " B", " m", "mm", " million", "Mio.", " bn", "-million", " TN", " to "),
    *("e9", "E-3", "e31", "x10^3", " × 10²", "10^", "{3}", "²", "³", "⁹", "½", "①"),
    *("kg", "Q3", "CLM-", "v1.2", "fct_", "0x", "fed", "a", "É", "ª", "中", "ß", "T10:30", "Z"),
    *("*", "**", "`", "(", ")", "[", "]", "{", "}", "<", ">", '"', "“", "|", "#", "&", "=", "~"),
    *("://", "https://a/", "1. ", "2) ", "> 3. ", "12:30", "9:30 pm", "2020-01-15", "1/2/2024"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(max_size=60)
LIST_MARKER = re.compile(r"\d[.)]\s", re.UNICODE)


@given(texts)
def test_numbers_and_skipped_tokens_are_disjoint_pieces_of_the_text(text: str) -> None:
    read = extract_numbers(text)
    assert not read.truncated
    tokens: list[Numeral | Skipped] = [*read.numbers, *read.skipped]
    tokens.sort(key=lambda token: token.start)
    ends = [0, *(token.end for token in tokens)]
    for end, token in zip(ends, tokens, strict=False):
        assert end <= token.start < token.end <= len(text)
        assert token.text == text[token.start : token.end]
    assert list(read.numbers) == sorted(read.numbers, key=lambda number: number.start)
    assert read.values == tuple(number.value for number in read.numbers)


@given(texts)
def test_every_digit_is_read_or_skipped(text: str) -> None:
    """No digit is lost, none is read twice."""
    read = extract_numbers(text)
    read_places: list[int] = []
    tokens: list[Numeral | Skipped] = [*read.numbers, *read.skipped]
    for token in tokens:
        read_places += range(token.start, token.end)
    assert len(read_places) == len(set(read_places))
    digits = {place for place, char in enumerate(text) if unicodedata.category(char) == "Nd"}
    assert digits <= set(read_places)


@given(texts)
def test_values_are_finite_and_bounded(text: str) -> None:
    for number in extract_numbers(text).numbers:
        assert number.value.is_finite()
        assert abs(number.value.adjusted()) <= 100 + 30 + 24
        assert not (number.value.is_zero() and number.value.is_signed())
        assert any(unicodedata.category(char) == "Nd" for char in number.text)


@given(texts, texts)
@example("5 ", "million")
@example("3 to", "4 million")
@example("$", "5")
@example("5 -", "3")
def test_lines_are_read_apart(first: str, second: str) -> None:
    """Only the numbers of a list look beyond their line; so a longer text keeps its numbers."""
    assume(not LIST_MARKER.search(f"{first}\n{second}"))
    together = extract_numbers(f"{first}\n{second}").values
    assert together == extract_numbers(first).values + extract_numbers(second).values


@given(texts)
def test_reading_is_repeatable(text: str) -> None:
    assert extract_numbers(text) == extract_numbers(text)


@given(st.integers(-(10**60), 10**60), st.integers(0, 40))
def test_plain_decimal_is_read_as_it_is(digits: int, scale: int) -> None:
    value = Decimal(f"{digits}E-{scale}")
    text = render_decimal(value)
    assert extract_numbers(text).values == (value,)
    assert [number.text for number in extract_numbers(f"it is {text}.").numbers] == [text]


@given(st.integers(1, 10**30), st.sampled_from([",", "'", "’", "_", "\u00a0", "\u202f", "\u2009"]))
def test_groups_of_three_are_read_whole(number: int, mark: str) -> None:
    text = f"{number:,}".replace(",", mark)
    assert list(extract_numbers(f"about {text} rows").values) == [Decimal(number)]
    assert extract_numbers(f"minus −{text}.25").values == (Decimal(f"-{number}.25"),)


@given(st.integers(1, 999), st.integers(1, 999), st.sampled_from(["k", " million", "bn", " B"]))
def test_range_shares_its_magnitude_only_upwards(low: int, high: int, word: str) -> None:
    first, second = extract_numbers(f"from {low}–{high}{word}").values
    scale = second / high
    assert scale > 1
    assert first == (low * scale if low < high else low)


# Each is repeated to a long text; all of them were chosen to lead a scan astray.
LEADERS = (
    *("1", "9" * 101 + "-", "-", "1-", "1,", "1.", "1'", "1_", "1\u00a0", "_", "__1 ", "1____"),
    *("[1] ", "1 k ", "10^", "://", "a://", "1.\n", "1. a\n", "1) a\n", " ", "\n", "> ", "*", "#"),
    *("a", "a1", "a1 ", "a-1-", "a.1.", "Q1,234,", "v1.2 ", "x^1", "R^2 ", "1m^", "4x4 ", "1-a "),
    *("1-1_", "1-2-x ", "1-2_3", "2020-01 ", "2020-01-15 ", "2024-01-15T", "1/", "1/1/20 ", "1:"),
    *("12:30 ", "10:10:10.", "550e8400-", "0x", "0xff ", "4095fed ", "1e", "1e9", "1e99 ", "1e-"),
    *("1 x 10", "1×10^", "10¹", "5 m", "5 million ", "5 million_", "1 - 2 ", "1 to ", "3-4 k "),
    *("$", "$ ", "US$", "\\$", "USD", "USD-", "EUR 1 ", "1 EUR-", "-$", "1,234,", "12,34,", "1 \t"),
    *("1,1.1.1'", "1.1.1 ", "1_1 ", '"1"-', "'1'-", "中", "é", "５", "½", "\u2003", "1" * 99 + " "),
)


def steps_of(text: str) -> int:
    """Count the calls that reading a text takes, of Python's functions and of C's."""
    steps = 0

    def step(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    sys.setprofile(step)
    try:
        extract_numbers(text)
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize("leader", LEADERS, ids=ascii)
def test_work_grows_no_faster_than_the_text(leader: str) -> None:
    text = leader * (6_000 // len(leader))
    assert steps_of(text) <= 11 * steps_of(text[: len(text) // 10])


@pytest.mark.parametrize("leader", LEADERS, ids=ascii)
def test_long_text_is_read(leader: str) -> None:
    """Backtracking does not show in the count of calls: were it quadratic, this would not end."""
    read = extract_numbers(leader * (60_000 // len(leader)))
    assert len(read.numbers) == 10_000 if read.truncated else len(read.numbers) <= 10_000
