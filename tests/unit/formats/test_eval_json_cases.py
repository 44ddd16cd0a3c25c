"""The eval-json format's case files: sets on disk -> what loading says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from proctor_grader import load_set
from tests.unit.formats.setfolder import assert_expected, read_cases, write_case

if TYPE_CHECKING:
    from pathlib import Path

CASES = [
    pytest.param(case, id=case["id"])
    for name in ("manifest.json", "manifest-more.json")
    for case in read_cases(f"eval-json/{name}")
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    root = write_case(tmp_path, case)
    loaded = load_set(root, format="eval-json", strict=case.get("strict", False))
    assert_expected(case["expect"], loaded)
