"""Fixtures of the formats' tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def as_nobody(tmp_path: Path) -> Iterator[None]:
    """Run the test without root's right to read everything."""
    if os.geteuid() != 0:
        yield
        return
    nobody = 65534
    opened = []
    for folder in (tmp_path, *tmp_path.parents):
        mode = folder.stat().st_mode
        if not mode & 0o001:
            opened.append((folder, mode))
            folder.chmod(mode | 0o011)
    os.chown(tmp_path, nobody, nobody)
    os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(0)
        for folder, mode in opened:
            folder.chmod(mode)
