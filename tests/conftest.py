"""Fixtures of the real parts: PostgreSQL, S3, Chromium, bubblewrap.

A missing part fails in CI and is a loud skip elsewhere; both say how to install it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.services.part import ATOMIC, BUBBLEWRAP, CHROMIUM, POSTGRES, S3, Part
from tests.services.session import Session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.services.postgres import PostgresBase, PostgresProcess, PostgresServer
    from tests.services.s3 import S3Bucket, S3Process, S3Server

SESSION = pytest.StashKey[Session]()
MISSING = "REAL PART MISSING: "
MARKS = {"postgres_server": "postgres", "private_postgres": "postgres", "chromium_path": "browser"}
MARKS |= {"s3_server": "s3", "private_s3": "s3"}


def pytest_configure(config: pytest.Config) -> None:
    """Begin the session that all workers share; the first process owns it."""
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    if given is not None:
        config.stash[SESSION] = Session(Path(given["services"]))
        return
    session = Session.begin()
    config.stash[SESSION] = session
    config.add_cleanup(session.end)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a pytest-xdist worker which session it belongs to."""
    node.workerinput["services"] = str(node.config.stash[SESSION].folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by the real parts that its fixtures reach, so that -m can choose."""
    for item in items:
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once more, in red, what was not tested and what to do about it."""
    told = {
        str(report.longrepr[2]).partition(MISSING)[2]
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and MISSING in str(report.longrepr[2])
    }
    for text in sorted(told):
        terminalreporter.write_line(f"NOT TESTED: {text}", red=True, bold=True)


def needed(part: Part) -> Path:
    """Where a real part lies; else the test fails (in CI) or is skipped."""
    found = part.find()
    if found is None and os.environ.get("CI") == "true":
        pytest.fail(part.remedy, pytrace=False)
    if found is None:
        pytest.skip(f"{MISSING}{part.remedy}")
    return found


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> PostgresServer:
    """The session's PostgreSQL server, shared by all workers: never stop or reconfigure it."""
    needed(POSTGRES)
    from tests.services.postgres import PostgresServer

    told = pytestconfig.stash[SESSION].shared("postgres")
    paths = {name: Path(told[name]) for name in ("data_dir", "log_file")}
    return PostgresServer(**told | paths)


@pytest.fixture
def postgres_base(postgres_server: PostgresServer) -> Iterator[PostgresBase]:
    """A fresh admin role with a base database of its own."""
    base = postgres_server.make_base()
    yield base
    postgres_server.drop_base(base)


@pytest.fixture
def private_postgres(pytestconfig: pytest.Config) -> Iterator[Callable[..., PostgresProcess]]:
    """Starts servers of this test alone, which it may stop, kill, restart and configure."""
    needed(POSTGRES)
    from tests.services.postgres import PostgresProcess

    started: list[PostgresProcess] = []

    def start(**settings: str) -> PostgresProcess:
        process = PostgresProcess(pytestconfig.stash[SESSION].private_folder(), settings)
        started.append(process)
        process.start()
        return process

    yield start
    for process in started:
        process.remove()


@pytest.fixture(scope="session")
def s3_server(pytestconfig: pytest.Config) -> S3Server:
    """The session's S3 server, shared by all workers."""
    needed(S3)
    from tests.services.s3 import S3Server

    return S3Server(**pytestconfig.stash[SESSION].shared("s3"))


@pytest.fixture
def s3_bucket(s3_server: S3Server) -> Iterator[S3Bucket]:
    """An empty bucket of this test."""
    bucket = s3_server.make_bucket()
    yield bucket
    bucket.drop()


@pytest.fixture
def private_s3(pytestconfig: pytest.Config) -> Iterator[Callable[[], S3Process]]:
    """Starts S3 servers of this test alone, which it may stop, kill and restart."""
    needed(S3)
    from tests.services.s3 import S3Process

    started: list[S3Process] = []

    def start() -> S3Process:
        process = S3Process(pytestconfig.stash[SESSION].private_folder())
        started.append(process)
        process.start()
        return process

    yield start
    for process in started:
        process.remove()


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """Debian's Chromium."""
    return needed(CHROMIUM)


@pytest.fixture(scope="session")
def bubblewrap_path() -> Path:
    """Debian's bwrap."""
    return needed(BUBBLEWRAP)


@pytest.fixture(scope="module")
def browser(chromium_path: Path) -> Iterator[Browser]:
    """A headless Chromium for a module's tests. While it is open, asyncio.run fails."""
    needed(ATOMIC)
    from tests.services.chromium import running_browser

    with running_browser(chromium_path) as running:
        yield running


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    """An empty page in a context of its own that cannot reach the network."""
    context = browser.new_context(offline=True)
    yield context.new_page()
    context.close()
