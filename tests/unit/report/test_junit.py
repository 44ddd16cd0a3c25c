"""JUnit XML: what CI systems read, valid whatever agents wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.model.result import Cause, ItemResult, UnitResult, Verdict
from proctor_grader.report.junit import junit_lines, render_junit, write_junit
from tests.make.example_run import small_run
from tests.make.golden import assert_golden
from tests.make.report import make_record, make_result, number_item

V = Verdict
RESULTS = [
    make_result("right"),
    make_result("wrong", V.OFF, answer="It is 120.", items=(number_item("It is 120.", "120"),)),
    make_result("crashed", V.ERROR, cause=Cause.AGENT, reason="AgentCrashed", answer=None),
    make_result("lost", V.ERROR, cause=Cause.INFRA, message="branch: no room", answer=None),
    make_result("setup", V.SETUP_FAILED, cause=Cause.SET, message="exit code 2", answer=None),
    make_result("unchecked", V.UNGRADED, cause=Cause.SET, message="the task has no checks"),
    make_result("stopped", V.CANCELLED, answer=None, items=(), stages={}),
]


def parsed(results: list[UnitResult]) -> ET.Element:
    return ET.fromstring(render_junit(make_record(results), iter(results)))


@pytest.mark.parametrize(
    ("task", "element"),
    [
        ("right", None),
        ("wrong", "failure"),
        ("crashed", "failure"),
        ("lost", "error"),
        ("setup", "error"),
        ("unchecked", "skipped"),
        ("stopped", "skipped"),
    ],
)
def test_an_outcome_becomes_the_element_that_ci_systems_know(
    task: str, element: str | None
) -> None:
    case = parsed(RESULTS).find(f".//testcase[@name='{task}']")
    assert case is not None
    assert [child.tag for child in case] == ([] if element is None else [element])


def test_counts_at_the_head_are_those_of_the_cases() -> None:
    root = parsed(RESULTS)
    suite = root.find("testsuite")
    assert suite is not None
    for head in (root, suite):
        assert {name: int(head.attrib[name]) for name in ("tests", "failures")} == {
            "tests": 7,
            "failures": 2,
        }
        assert int(head.attrib["errors"]) == len(suite.findall(".//error")) == 2
        assert int(head.attrib["skipped"]) == len(suite.findall(".//skipped")) == 2


def test_a_failure_says_what_was_wrong() -> None:
    failure = parsed(RESULTS).find(".//testcase[@name='wrong']/failure")
    assert failure is not None
    assert failure.attrib == {
        "type": "OFF",
        "message": "answer: got 120, expected 100 (±15 %)",
    }
    assert failure.text is not None
    assert "final answer: It is 120." in failure.text


def test_variants_and_trials_are_told_apart() -> None:
    results = [
        make_result("t", variant="haiku"),
        make_result("t", variant="sonnet"),
        make_result("t", variant="sonnet", trial=2),
    ]
    cases = parsed(results).findall(".//testcase")
    assert [(case.attrib["classname"], case.attrib["name"]) for case in cases] == [
        ("northwind.haiku", "t"),
        ("northwind.sonnet", "t"),
        ("northwind.sonnet", "t [trial 2]"),
    ]


@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_gives_valid_xml(task: str, answer: str) -> None:
    item = ItemResult(answer, False, answer)
    result = make_result(task, V.OFF, answer=answer, message=answer, reason=answer, items=(item,))
    record = make_record([result], set_name=answer, warehouse=task, commit=answer)
    text = render_junit(record, [result])
    ET.fromstring(text.encode())


def test_hostile_text_stays_text() -> None:
    answer = "]]></failure><testcase name='forged'/>\x00\x1b[2J\u202e"
    root = parsed([make_result('a"b\n<c>', V.OFF, answer=answer)])
    (case,) = root.findall(".//testcase")
    assert case.attrib["name"] == 'a"b\n<c>'
    failure = case.find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "]]></failure><testcase name='forged'/>␀␛[2J⟨U+202E⟩" in failure.text


def test_credentials_are_masked() -> None:
    result = make_result("t", V.OFF, answer="dsn postgresql://agent:hunter2hunter2@db/x")
    assert "hunter2" not in render_junit(make_record([result]), [result])


def test_long_texts_are_cut() -> None:
    result = make_result("t", V.OFF, answer="y" * 20_000, message="m" * 20_000)
    assert len(render_junit(make_record([result]), [result])) < 8_000


def test_units_are_written_one_at_a_time() -> None:
    read: list[int] = []

    def stream() -> Iterator[UnitResult]:
        for number in range(3):
            read.append(number)
            yield make_result(f"t{number}")

    lines = junit_lines(make_record([]), stream())
    while not next(lines).startswith("<testcase"):
        pass
    assert read == [0]


def test_a_file_holds_the_same_as_the_text(tmp_path: Path) -> None:
    write_junit(tmp_path / "junit.xml", make_record(RESULTS), iter(RESULTS))
    written = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert written == render_junit(make_record(RESULTS), RESULTS)


def test_the_whole_document_is_as_reviewed(tmp_path: Path) -> None:
    results = small_run(tmp_path).results
    assert_golden("report/junit.xml", render_junit(make_record(results), results))
