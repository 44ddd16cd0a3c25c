from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from proctor_grader.store.outage import Outage


class Away(Exception):
    pass


class Clock:
    """Stands in for the standard library's: sleeping is what moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def make_outage(told: list[BaseException], seconds: float = 60) -> Outage:
    return Outage(
        retry_seconds=seconds,
        is_outage=lambda error: isinstance(error, Away),
        on_outage=told.append,
    )


def failing(times: float, calls: list[int]) -> Callable[[], str]:
    def call() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise Away
        return "done"

    return call


def test_call_that_works_is_made_once(clock: Clock) -> None:
    calls: list[int] = []
    assert make_outage([]).ride_out(failing(0, calls)) == "done"
    assert (len(calls), clock.slept) == (1, [])


def test_call_is_repeated_until_it_works_and_the_outage_told_once(clock: Clock) -> None:
    calls: list[int] = []
    told: list[BaseException] = []
    assert make_outage(told).ride_out(failing(5, calls)) == "done"
    assert (len(calls), len(told)) == (6, 1)
    assert max(clock.slept) <= 5


def test_outage_ends_in_its_last_error_after_the_given_time(clock: Clock) -> None:
    began = clock.now
    with pytest.raises(Away):
        make_outage([], 60).ride_out(failing(1e9, []))
    assert 60 <= clock.now - began <= 65


def test_later_calls_of_the_same_outage_do_not_wait_again(clock: Clock) -> None:
    told: list[BaseException] = []
    outage = make_outage(told)
    with pytest.raises(Away):
        outage.ride_out(failing(1e9, []))
    calls: list[int] = []
    before = clock.now
    with pytest.raises(Away):
        outage.ride_out(failing(1e9, calls))
    assert (len(calls), clock.now, len(told)) == (1, before, 1)


def test_new_outage_after_a_success_has_a_time_of_its_own_and_is_told(clock: Clock) -> None:
    told: list[BaseException] = []
    outage = make_outage(told)
    with pytest.raises(Away):
        outage.ride_out(failing(1e9, []))
    outage.ride_out(failing(0, []))
    before = clock.now
    with pytest.raises(Away):
        outage.ride_out(failing(1e9, []))
    assert clock.now - before >= 60
    assert len(told) == 2


def test_failure_long_after_the_last_one_is_a_new_outage(clock: Clock) -> None:
    outage = make_outage([])
    with pytest.raises(Away):
        outage.ride_out(failing(1e9, []))
    clock.now += 3600
    assert outage.ride_out(failing(3, [])) == "done"


def test_refusal_is_not_repeated_and_ends_an_outage(clock: Clock) -> None:
    told: list[BaseException] = []
    outage = make_outage(told)

    def refuse() -> None:
        raise KeyError

    with pytest.raises(Away):
        outage.ride_out(failing(1e9, []))
    with pytest.raises(KeyError):
        outage.ride_out(refuse)
    assert outage.ride_out(failing(3, [])) == "done"
    assert len(told) == 2


def test_no_patience_means_no_repetition(clock: Clock) -> None:
    calls: list[int] = []
    with pytest.raises(Away):
        make_outage([], 0).ride_out(failing(1, calls))
    assert (len(calls), clock.slept) == (1, [])
