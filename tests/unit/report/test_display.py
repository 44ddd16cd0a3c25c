"""Values and foreign texts as people see them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.report.display import (
    MARGIN,
    as_decimal,
    count_of,
    cut,
    duration,
    excerpt,
    legible,
    moment,
    one_line,
    plain,
    short,
    shown,
    size,
    visible,
)

TOKEN = "ghp_" + "a1B2" * 9


class TestVisible:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("plain text", "plain text", id="plain-text-stays"),
            pytest.param("ä 漢 🙂\tx\n", "ä 漢 🙂\tx\n", id="letters-tabs-and-line-feeds-stay"),
            pytest.param("a\x00b\x1b[31m", "a␀b␛[31m", id="controls-become-pictures"),
            pytest.param("a\r\nb\rc", "a\nb␍c", id="line-ends-of-windows-become-line-feeds"),
            pytest.param("\x7f\x85", "␡⟨U+0085⟩", id="delete-and-c1-controls"),
            pytest.param("abc\u202efed", "abc⟨U+202E⟩fed", id="direction-override"),
            pytest.param("\u2066x\u2069\u200f", "⟨U+2066⟩x⟨U+2069⟩⟨U+200F⟩", id="isolates-marks"),
            pytest.param("a\u200bb\ufeff\u00ad", "a⟨U+200B⟩b⟨U+FEFF⟩⟨U+00AD⟩", id="zero-width"),
            pytest.param("👩\u200d🚀", "👩\u200d🚀", id="joiners-that-emoji-need-stay"),
            pytest.param("\U000e0041\U000e0042", "⟨U+E0041⟩⟨U+E0042⟩", id="tag-smuggling"),
            pytest.param("\ud800x", "⟨U+D800⟩x", id="unpaired-surrogate"),
            pytest.param("\ufffe\uffff", "⟨U+FFFE⟩⟨U+FFFF⟩", id="noncharacters"),
            pytest.param("a\u2028b", "a⟨U+2028⟩b", id="line-separator"),
        ],
    )
    def test_what_hides_or_reorders_is_made_visible(self, text: str, expected: str) -> None:
        assert visible(text) == expected

    @given(st.text(st.characters()))
    def test_any_text_becomes_valid_xml_and_utf8(self, text: str) -> None:
        result = visible(text)
        document = result.encode().replace(b"&", b"&amp;").replace(b"<", b"&lt;")
        assert ET.fromstring(b"<t>" + document + b"</t>").text == (result or None)

    @given(st.text())
    def test_twice_is_the_same_as_once(self, text: str) -> None:
        assert visible(visible(text)) == visible(text)


class TestCutting:
    def test_credentials_are_masked_before_hidden_characters_are_named(self) -> None:
        assert shown(f"token {TOKEN}\x00") == "token ***␀"

    @pytest.mark.parametrize("shorten", [excerpt, one_line])
    def test_a_secret_across_the_cut_leaves_no_half(self, shorten: Any) -> None:
        text = "x" * 90 + " " + TOKEN + " tail"
        for limit in range(85, 140):
            assert "ghp_" not in shorten(text, limit)

    def test_what_was_cut_ends_with_an_ellipsis(self) -> None:
        assert cut("abcdef", 4) == "abc…"
        assert cut("abcd", 4) == "abcd"

    def test_one_line_squeezes_white_space(self) -> None:
        assert one_line("a\n\n  b\tc ", 20) == "a b c"

    def test_a_huge_text_is_not_read_to_its_end(self) -> None:
        assert len(excerpt("y" * 10_000_000, 100)) == 100
        assert MARGIN < 10_000


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("1284500.20", "1284500.2"),
            ("1E+3", "1000"),
            ("-0.00", "0"),
            ("0E+50", "0"),
            ("1E-12", "0.000000000001"),
            ("1E+999999", "1E+999999"),
        ],
    )
    def test_plain_has_no_exponent_and_no_trailing_zeros(self, value: str, expected: str) -> None:
        assert plain(Decimal(value)) == expected

    def test_legible_gives_way_to_an_exponent_only_beyond_reading(self) -> None:
        long = "1" * 60 + "." + "2" * 15
        assert legible(Decimal(long)) == long
        assert legible(Decimal("1e300")) == "≈ 1.00000E+300"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            pytest.param("307992639.49", "307992639.49", id="fits"),
            pytest.param("0." + "3" * 40, "≈ 0.333333", id="many-decimals"),
            pytest.param("9" * 10 + "." + "1" * 40, "≈ 10000000000", id="rounded-up"),
            pytest.param("1e308", "≈ 1.00000E+308", id="huge"),
            pytest.param("-2.5e-300", "≈ -2.50000E-300", id="tiny"),
        ],
    )
    def test_short_fits_a_label(self, value: str, expected: str) -> None:
        assert short(Decimal(value)) == expected

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (5, Decimal(5)),
            (Decimal("1.50"), Decimal("1.50")),
            (0.1, Decimal("0.1")),
            ("12.5", Decimal("12.5")),
            (True, None),
            (None, None),
            ("abc", None),
            ("NaN", None),
            (float("inf"), None),
            ([1], None),
        ],
    )
    def test_json_values_are_read_exactly(self, value: Any, expected: Decimal | None) -> None:
        assert as_decimal(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 ms"),
        (0.0042, "4 ms"),
        (0.5, "500 ms"),
        (1, "1.0 s"),
        (59.94, "59.9 s"),
        (65, "1 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7620, "2 h 07 min"),
    ],
)
def test_durations_have_the_unit_that_fits(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (67_000_000, "63.9 MiB"), (2**31, "2.0 GiB")],
)
def test_sizes_have_binary_units(size_bytes: int, expected: str) -> None:
    assert size(size_bytes) == expected


@pytest.mark.parametrize(
    ("iso", "expected"),
    [
        ("2026-11-30T09:00:00.120000+00:00", "2026-11-30 09:00:00 UTC"),
        ("2026-11-30T09:00:00Z", "2026-11-30 09:00:00 UTC"),
        ("2026-11-30T09:00:00.5+02:00", "2026-11-30 09:00:00+02:00"),
        ("", ""),
        ("yesterday", "yesterday"),
    ],
)
def test_moments_are_shown_to_the_second(iso: str, expected: str) -> None:
    assert moment(iso) == expected


def test_counts_agree_with_their_noun() -> None:
    assert [count_of(n, "task") for n in (0, 1, 5000)] == ["0 tasks", "1 task", "5,000 tasks"]
