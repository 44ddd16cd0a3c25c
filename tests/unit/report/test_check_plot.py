"""One number check as a drawing: right place, right scale, any size, nothing but shapes."""

from __future__ import annotations

from decimal import Decimal
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.report.check_plot import WIDTH, CheckPlot, render_check_plot, scale_note

FINITE = st.decimals(
    min_value=Decimal("-1e308"), max_value=Decimal("1e308"), allow_nan=False, allow_infinity=False
)
TOLERANCES = st.decimals(min_value=0, max_value=Decimal("1e6"), allow_nan=False)
EXTREME = st.builds(
    lambda digits, exponent, sign: Decimal((sign, (digits,), exponent)),
    st.integers(0, 9),
    st.integers(-307, 307),
    st.integers(0, 1),
)


def plot(value: str, got: str | None, tolerance: str = "0.15") -> CheckPlot:
    wanted, within = Decimal(value), Decimal(tolerance)
    found = None if got is None else Decimal(got)
    reach = within * abs(wanted) if wanted else Decimal("1e-9")
    return CheckPlot(wanted, within, found, found is not None and abs(found - wanted) <= reach)


def drawn(check: CheckPlot) -> dict[str, ET.Element]:
    """Elements of the drawing by class."""
    root = ET.fromstring(render_check_plot(check))
    return {element.attrib.get("class", ""): element for element in root.iter()}


def place(element: ET.Element) -> float:
    """Where a mark stands."""
    if "cx" in element.attrib:
        return float(element.attrib["cx"])
    first = element.attrib["d"].split("M")[1].split()[0]
    return float(first) + 5  # a cross begins five to the left of its middle


class TestPlaces:
    def test_a_hit_lies_within_the_band_beside_the_expected_value(self) -> None:
        shapes = drawn(plot("100", "110"))
        band = shapes["band"].attrib
        left, width = float(band["x"]), float(band["width"])
        hit = place(shapes["mark hit"])
        expected = float(shapes["expected"].attrib["x1"])
        assert left < expected < hit < left + width
        assert (hit - expected) / (width / 2) == pytest.approx(10 / 15, abs=0.02)

    def test_a_hit_on_the_bound_lies_on_the_bands_edge(self) -> None:
        shapes = drawn(plot("100", "115"))
        band = shapes["band"].attrib
        edge = float(band["x"]) + float(band["width"])
        assert place(shapes["mark hit"]) == pytest.approx(edge, abs=0.2)

    def test_a_near_miss_lies_outside_on_a_linear_scale(self) -> None:
        check = plot("100", "84")
        shapes = drawn(check)
        assert place(shapes["mark miss cross"]) < float(shapes["band"].attrib["x"])
        assert scale_note(check) == ""

    @pytest.mark.parametrize(
        ("value", "got", "side"),
        [("100", "90000", 1), ("100", "0.01", -1), ("-100", "-90000", -1), ("-100", "-0.01", 1)],
    )
    def test_a_far_miss_of_the_same_sign_is_on_a_logarithmic_scale(
        self, value: str, got: str, side: int
    ) -> None:
        check = plot(value, got, "0.01")
        shapes = drawn(check)
        expected = float(shapes["expected"].attrib["x1"])
        distance = place(shapes["mark miss cross"]) - expected
        assert distance * side > WIDTH / 2
        assert scale_note(check) == "logarithmic scale"
        assert float(shapes["band"].attrib["width"]) >= 3

    @pytest.mark.parametrize(("value", "got"), [("100", "-100"), ("0", "3"), ("100", "0")])
    def test_what_fits_on_no_scale_is_an_arrow_at_the_edge(self, value: str, got: str) -> None:
        check = plot(value, got, "0.01")
        assert "off the scale" in scale_note(check)
        assert "Z" in drawn(check)["mark miss"].attrib["d"]

    def test_tolerance_zero_is_a_line_that_can_be_seen(self) -> None:
        check = plot("360618", "360619", "0")
        shapes = drawn(check)
        assert float(shapes["band"].attrib["width"]) == 3
        assert place(shapes["mark miss cross"]) > float(shapes["expected"].attrib["x1"])

    def test_without_a_number_only_what_is_wanted_is_drawn(self) -> None:
        shapes = drawn(plot("100", None))
        assert not any(name.startswith("mark") for name in shapes)
        assert "band" in shapes

    def test_a_gold_of_zero_allows_a_billionth(self) -> None:
        check = plot("0", "0.0000000005")
        assert check.passed
        assert (check.low, check.high) == (Decimal("-1e-9"), Decimal("1e-9"))
        assert "mark hit" in drawn(check)


class TestWords:
    @pytest.mark.parametrize(
        ("value", "got", "words"),
        [
            pytest.param("100", "120", "20 % above", id="above"),
            pytest.param("42000", "40210", "4.26 % below", id="below"),
            pytest.param("-100", "-120", "20 % below", id="more-negative-is-below"),
            pytest.param("100", "100000", "1000 times as large", id="thousands-mistaken"),
            pytest.param("100000", "100", "1000 times as small", id="thousands-missed"),
            pytest.param("100", "-100", "of the opposite sign", id="sign"),
            pytest.param("100", "0", "100 % below", id="zero"),
            pytest.param("0", "3", "off by 3", id="gold-of-zero"),
            pytest.param("100", "100", "", id="exact"),
            pytest.param("100", None, "", id="none"),
            pytest.param("1e-300", "1e300", "1.0E+600 times as large", id="absurd"),
        ],
    )
    def test_the_deviation_is_told(self, value: str, got: str | None, words: str) -> None:
        assert plot(value, got).deviation == words

    def test_the_drawing_is_described(self) -> None:
        label = ET.fromstring(render_check_plot(plot("100", "120"))).attrib["aria-label"]
        assert label == "Allowed 85 to 115, expected 100, closest 120: outside."
        assert plot("100", None).description == (
            "Allowed 85 to 115, expected 100, no number found in the answer."
        )
        assert plot("7", "7", "0").description == "Allowed 7, expected 7, closest 7: inside."


@given(st.one_of(FINITE, EXTREME), st.one_of(st.none(), FINITE, EXTREME), TOLERANCES)
def test_any_numbers_can_be_drawn(value: Decimal, got: Decimal | None, within: Decimal) -> None:
    check = CheckPlot(value, within, got, passed=False)
    root = ET.fromstring(render_check_plot(check))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg",
        "line",
        "rect",
        "circle",
        "path",
        "text",
    }
    for element in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= WIDTH
    assert len(render_check_plot(check)) < 2_000
    assert scale_note(check) in {
        "",
        "logarithmic scale",
        "the closest number is off the scale",
    }
