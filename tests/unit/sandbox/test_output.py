"""Keeping what a process prints, up to a limit and whatever happens to the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor_operator.sandbox.output import Capture


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    """A capture of ten bytes."""
    made = Capture(tmp_path / "log", 10)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("pieces", "kept", "truncated"),
    [
        pytest.param([b"12345"], b"12345", False, id="less-than-the-limit"),
        pytest.param([b"12345", b"67890"], b"1234567890", False, id="exactly-the-limit"),
        pytest.param([b"12345", b"678901"], b"1234567890", True, id="a-byte-more"),
        pytest.param([b"1234567890", b"x", b"y"], b"1234567890", True, id="more-afterwards"),
    ],
)
def test_output_is_kept_up_to_the_limit(
    tmp_path: Path, capture: Capture, pieces: list[bytes], kept: bytes, truncated: bool
) -> None:
    for piece in pieces:
        os.write(capture.writer, piece)
        assert capture.pump()

    assert (tmp_path / "log").read_bytes() == kept
    assert capture.truncated == truncated


def test_nothing_to_read_is_not_the_end(capture: Capture) -> None:
    assert capture.pump()

    capture.close_writer()

    assert not capture.pump()


def test_draining_takes_what_is_left_and_waits_for_nobody(tmp_path: Path, capture: Capture) -> None:
    os.write(capture.writer, b"rest")

    capture.drain()  # our own end is still open, as a daemon's would be

    assert (tmp_path / "log").read_bytes() == b"rest"
    assert capture.head(2) == "re"


def test_a_log_that_cant_be_written_never_stops_the_process(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "missing" / "log", 10)
    os.write(capture.writer, b"one")
    capture.pump()
    (tmp_path / "missing").mkdir()
    os.write(capture.writer, b"two")
    capture.pump()
    capture.close()

    assert capture.truncated
    assert list((tmp_path / "missing").iterdir()) == []  # no log with a hole in it


def test_a_log_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "target")
    capture = Capture(tmp_path / "log", 10)
    os.write(capture.writer, b"one")
    capture.pump()
    capture.close()

    assert not (tmp_path / "target").exists()
    assert (tmp_path / "log").read_bytes() == b"one"
