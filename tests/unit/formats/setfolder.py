"""Sets on disk and what is expected of them, in the shape of the case files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor_grader.jsontext import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader import LoadedSet

CASES = Path(__file__).parents[2] / "cases"


def read_cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = load_json((CASES / name).read_bytes())
    return cases


def write_set(
    parent: Path,
    files: Mapping[str, str | bytes],
    symlinks: Mapping[str, str] | None = None,
    folder: str = "set",
) -> Path:
    """Write a set below `parent`, beside a file that no set may reach."""
    root = parent / folder
    root.mkdir()
    (parent / "outside.txt").write_text("outside")
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for name, target in (symlinks or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    return root


def write_case(parent: Path, case: Mapping[str, Any]) -> Path:
    encoded = case.get("files_b64", {}).items()
    files = case["files"] | {name: base64.b64decode(content) for name, content in encoded}
    return write_set(parent, files, case.get("symlinks"), case.get("dir", "set"))


def told(problems: Iterable[Any]) -> list[tuple[str, str]]:
    return [(problem.where, problem.message) for problem in problems]


def assert_expected(expected: Mapping[str, Any], loaded: LoadedSet) -> None:
    """Check a loaded set as section 12 of the eval-json format says."""
    shown = load_json(dump_json(loaded.to_json()))
    rest = dict(expected)
    for kind in ("errors", "warnings"):
        if kind in rest:
            _assert_told(rest.pop(kind), shown[kind])
    assert rest.pop("ok") == (not shown["errors"])
    _assert_within(rest, shown, "")


def _assert_told(expected: list[dict[str, str]], shown: list[dict[str, str]]) -> None:
    left = list(shown)
    for wanted in expected:
        found = [
            problem
            for problem in left
            if wanted.get("where", problem["where"]) == problem["where"]
            and wanted["contains"] in problem["message"]
        ]
        assert len(found) == 1, f"{wanted} fits {len(found)} of {shown}"
        left.remove(found[0])
    assert left == []


def _assert_within(expected: Any, shown: Any, where: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in shown, f"{where}.{key} is missing"
            _assert_within(value, shown[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(shown) == len(expected), f"{where}: {shown}"
        for index, value in enumerate(expected):
            _assert_within(value, shown[index], f"{where}[{index}]")
    else:
        assert shown == expected, where
        assert isinstance(shown, bool) == isinstance(expected, bool), where
