"""What a path in a set may look like."""

from __future__ import annotations

import pytest

from proctor_grader.formats.paths import escapes, is_relative, segments


@pytest.mark.parametrize(
    "path",
    ["a", "a/b.txt", "./a", "a//b", "a b", "ü/ñ.md", "-x", "ab:c", "1:x", "~/x", "a\u200b", ".."],
)
def test_relative(path: str) -> None:
    assert is_relative(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        " ",
        "\t\n",
        "/a",
        "//a",
        "\\a",
        "a\\b",
        "C:/x",
        "c:x",
        "z:",
        "a\0b",
        "a\nb",
        "a\x7f",
        "a\x85b",
    ],
)
def test_not_relative(path: str) -> None:
    assert not is_relative(path)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("..", True),
        ("a/..", True),
        ("a/../b", True),
        ("./../a", True),
        ("...", False),
        ("a..b/c..", False),
        ("..a", False),
    ],
)
def test_escapes(path: str, answer: bool) -> None:
    assert escapes(path) is answer


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a", ["a"]),
        ("./a//b/./c.txt", ["a", "b", "c.txt"]),
        ("a/", ["a", ""]),
        ("a/.", ["a", ""]),
        (".", [""]),
        ("a/b///", ["a", "b", ""]),
    ],
)
def test_segments(path: str, names: list[str]) -> None:
    assert segments(path) == names
