"""Golden files: reviewed once, compared ever after.

`PROCTOR_UPDATE_GOLDEN=1` writes them anew; the change is then reviewed as a diff.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """The text is what the golden file `name` below `tests/golden` holds."""
    path = FOLDER / name
    if os.environ.get("PROCTOR_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"{name} differs; if that is right: PROCTOR_UPDATE_GOLDEN=1"
