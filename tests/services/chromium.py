"""Headless Chromium from Debian's package, driven by playwright without a browser of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright


@contextmanager
def running_browser(program: Path) -> Iterator[Browser]:
    """A browser that is closed at the end. As root Chromium only starts without its sandbox."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, chromium_sandbox=os.geteuid() != 0, headless=True
        )
        try:
            yield browser
        finally:
            browser.close()
