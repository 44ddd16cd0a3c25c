"""The parts of a unit's page: checks, answer, time line, captures, facts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.model.result import Cause, ItemResult, Outcome, Verdict
from proctor_grader.report.answer import Piece, answer_pieces
from proctor_grader.report.capture_view import ColumnView, capture_view
from proctor_grader.report.check_view import check_view
from proctor_grader.report.table import CaptureRows
from proctor_grader.report.timeline import timeline_of
from proctor_grader.report.unit_facts import attempt_facts, fact, named, task_facts
from tests.make.report import make_result, make_task, number_item, stage

TOKEN = "ghp_" + "a1B2" * 9


class TestAnswer:
    def test_numbers_that_checks_were_held_against_stand_out(self) -> None:
        answer = "Revenue 101, refunds 250."
        items = (number_item(answer, "101", name="rev"), number_item(answer, "250", name="ref"))
        assert answer_pieces(answer, items) == (
            Piece("Revenue "),
            Piece("101", "hit", ("rev",)),
            Piece(", refunds "),
            Piece("250", "miss", ("ref",)),
            Piece("."),
        )

    def test_a_number_that_satisfied_one_of_two_checks_is_a_hit(self) -> None:
        items = (
            number_item("101", "101", value="500", name="far"),
            number_item("101", "101", name="near"),
        )
        assert answer_pieces("101", items) == (Piece("101", "hit", ("far", "near")),)

    @pytest.mark.parametrize(
        "closest",
        [
            {"start": 2, "end": 90},
            {"start": -3, "end": 2},
            {"start": 5, "end": 5},
            {"start": "0", "end": "2"},
            {},
            "text",
            None,
        ],
    )
    def test_a_place_that_cannot_be_is_not_marked(self, closest: Any) -> None:
        item = ItemResult("x", True, "", {"closest": closest})
        assert answer_pieces("hello world", (item,)) == (Piece("hello world"),)

    def test_overlapping_places_are_marked_once(self) -> None:
        items = (
            ItemResult("a", True, "", {"closest": {"start": 0, "end": 5}}),
            ItemResult("b", True, "", {"closest": {"start": 3, "end": 8}}),
        )
        assert answer_pieces("12345678", items) == (Piece("12345", "hit", ("a",)), Piece("678"))

    def test_masking_moves_the_marks_along(self) -> None:
        answer = f"7 with {TOKEN} gives 101"
        items = (
            ItemResult("first", True, "", {"closest": {"start": 0, "end": 1}}),
            number_item(answer, "101", name="last"),
        )
        assert answer_pieces(answer, items) == (
            Piece("7", "hit", ("first",)),
            Piece(" with *** gives "),
            Piece("101", "hit", ("last",)),
        )

    def test_a_number_within_a_secret_is_not_shown(self) -> None:
        answer = f"key {TOKEN} end"
        item = ItemResult("x", True, "", {"closest": {"start": 9, "end": 10}})
        assert "".join(piece.text for piece in answer_pieces(answer, (item,))) == "key *** end"

    @given(st.text("ab1 \x00\u202e"), st.integers(0, 30), st.integers(1, 30))
    def test_the_pieces_are_the_whole_answer(self, answer: str, start: int, length: int) -> None:
        item = ItemResult("x", True, "", {"closest": {"start": start, "end": start + length}})
        text = "".join(piece.text for piece in answer_pieces(answer, (item,)))
        assert text == answer.replace("\x00", "␀").replace("\u202e", "⟨U+202E⟩")


class TestChecks:
    def test_a_number_is_drawn_and_told(self) -> None:
        view = check_view(number_item("$120", "$120"))
        assert view.plot is not None
        assert (view.outcome, view.word) == (Outcome.FAILED, "failed")
        assert dict(view.facts) == {
            "Expected": "100",
            "Got": "120 (20 % above)",
            "Written as": "$120",
            "Tolerance": "±15 %",
            "Allowed": "85 to 115",
        }

    def test_no_number_is_told(self) -> None:
        assert dict(check_view(number_item("", None)).facts)["Got"] == "no number in the answer"

    def test_any_other_item_is_shown_with_its_data(self) -> None:
        view = check_view(
            ItemResult("sources", None, "2 of 3", {"read": ["a", "b"], "score_is": Decimal("0.50")})
        )
        assert (view.outcome, view.word, view.detail) == (
            Outcome.UNGRADED,
            "not judged",
            "2 of 3",
        )
        assert view.plot is None
        assert view.facts == (("read", "a, b"), ("score is", "0.5"))

    def test_more_data_of_a_number_is_not_lost(self) -> None:
        item = number_item("101", "101")
        more = ItemResult(item.name, True, "", {**item.data, "model": "haiku"})
        assert ("model", "haiku") in check_view(more).facts


class TestTimeline:
    def test_stages_come_in_the_order_in_which_they_run(self) -> None:
        stages = {"drop": stage(1), "agent": stage(2), "other": stage(1), "branch": stage(1)}
        names = [view.name for view in timeline_of(stages)]
        assert names == ["branch", "agent", "drop", "other"]

    def test_bars_share_one_clock(self) -> None:
        views = timeline_of({"branch": stage(10), "agent": stage(60, at=40)})
        assert [(view.offset, view.width) for view in views] == [(0, 10), (40, 60)]

    def test_without_clock_times_stages_stand_end_to_end(self) -> None:
        stages = {
            "branch": stage(25, started_at="", ended_at=""),
            "agent": stage(75, started_at="soon"),
        }
        assert [(view.offset, view.width) for view in timeline_of(stages)] == [(0, 25), (25, 75)]

    def test_nothing_that_took_no_time_vanishes(self) -> None:
        (view,) = timeline_of({"branch": stage(0)})
        assert view.width > 0
        assert view.offset + view.width <= 100

    @pytest.mark.parametrize(
        ("end", "words"),
        [
            pytest.param({}, "done", id="ok"),
            pytest.param({"exit_code": 0}, "done", id="ok-with-code-0"),
            pytest.param({"ok": False}, "failed", id="no-reason"),
            pytest.param({"ok": False, "exit_code": 2}, "exit code 2", id="exit-code"),
            pytest.param(
                {"ok": False, "timed_out": True, "signal": 9, "reason": "AgentTimeout"},
                "timed out, ended by signal 9, AgentTimeout",
                id="time-out",
            ),
        ],
    )
    def test_how_a_stage_ended_is_told(self, end: dict[str, Any], words: str) -> None:
        assert timeline_of({"agent": stage(1, **end)})[0].ended == words


class TestCaptures:
    def test_a_fingerprint_with_rows_is_shown(self) -> None:
        summary = {
            "exists": True,
            "row_count": 8423,
            "columns": {"id": {"type": "INTEGER", "nulls": 0, "sum": "12"}},
            "grain": {"key": ["id"], "distinct": 8112, "unique": False},
            "sample_clamped": True,
        }
        rows = CaptureRows(("id",), (("1",), (None,)), total=8423)
        view = capture_view("orders", summary, rows)
        assert view.facts == (
            "8,423 rows",
            "(id) does not identify a row: 8112 distinct",
            "fewer sample rows were kept than the set asks for",
        )
        assert view.columns == (ColumnView("id", "INTEGER", "0", "12"),)
        assert view.rows == (("1",), (None,))
        assert view.more == "8,421 more rows not shown"

    @pytest.mark.parametrize(
        ("columns", "expected"),
        [
            pytest.param({"a": "TEXT"}, (ColumnView("a", "TEXT"),), id="types-only"),
            pytest.param(
                [{"name": "a", "type": "TEXT", "nulls": None}],
                (ColumnView("a", "TEXT"),),
                id="list",
            ),
            pytest.param(None, (), id="none"),
            pytest.param("odd", (), id="text"),
        ],
    )
    def test_columns_in_any_form_are_shown(
        self, columns: Any, expected: tuple[ColumnView, ...]
    ) -> None:
        view = capture_view("t", {"exists": True, "columns": columns}, None)
        assert view.columns == expected

    def test_a_table_that_is_not_there_says_so(self) -> None:
        view = capture_view("t", {"exists": False}, None)
        assert not view.exists
        assert view.facts == ("There is no such table on the branch.",)

    def test_refusals_and_unreadable_files_are_told(self) -> None:
        view = capture_view(
            "t", {"exists": True, "refused": "too large"}, CaptureRows(note="can't be read")
        )
        assert view.facts == ("too large", "can't be read")

    def test_an_odd_summary_is_shown_as_it_is(self) -> None:
        assert capture_view("t", ["?"], None).facts == ('["?"]',)

    def test_wide_tables_and_long_values_are_cut(self) -> None:
        rows = CaptureRows(tuple(f"c{i}" for i in range(100)), (("x" * 500,) * 100,), total=1)
        view = capture_view("t", {"exists": True}, rows)
        assert len(view.head) == len(view.rows[0]) == 60
        assert view.rows[0][0] == "x" * 199 + "…"
        assert view.more == "40 more columns not shown"


class TestFacts:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("text", "text"),
            (Decimal("1.50"), "1.5"),
            (["a", "b"], "a, b"),
            ({"a": 1}, '{"a": 1}'),
            (None, "null"),
            (True, "true"),
        ],
    )
    def test_json_values_read_as_words(self, value: Any, expected: str) -> None:
        assert fact(value) == expected
        assert named({"some_name": value}) == (("some name", expected),)

    def test_a_task_tells_what_its_author_wrote(self) -> None:
        task = make_task("t", tags=("a", "b"), why="because", suite="s", row="7", gt="1,2")
        assert dict(task_facts(task)) == {
            "Id": "t",
            "Class": "read",
            "Kind": "query",
            "Tags": "a, b",
            "Suite": "s, row 7",
            "Why": "because",
            "Gold, as written": "1,2",
        }

    def test_many_names_are_cut(self) -> None:
        task = make_task("t", covers=tuple(f"m{i}" for i in range(500)))
        assert dict(task_facts(task))["Covers"].endswith("m199 and 300 more")

    def test_an_attempt_tells_what_it_used_and_where_it_lies(self) -> None:
        result = make_result(
            "t", Verdict.ERROR, cause=Cause.INFRA, reason="NodeLost", usage={"tokens": 12}
        )
        facts = dict(attempt_facts(result, place="/store/x/"))
        assert facts["Cause"] == "caused by the infrastructure"
        assert facts["tokens"] == "12"
        assert facts["Stored in"] == "/store/x/"

    def test_a_unit_that_was_never_started_has_no_attempt(self) -> None:
        facts = dict(attempt_facts(make_result("t", attempt=0), place=""))
        assert facts["Attempt"] == "none was started"
        assert "Stored in" not in facts
