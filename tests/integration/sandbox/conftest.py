"""Sandboxes of both kinds, and an attempt's folder in each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proctor_operator.sandbox import Sandbox, choose_sandbox
from tests.integration.sandbox.agents import Bell, Unit


@pytest.fixture
def bwrap(bubblewrap_path: Path) -> Iterator[Sandbox]:
    """Bubblewrap, which must work here."""
    sandbox, _ = choose_sandbox("bwrap")
    yield sandbox
    sandbox.close()


@pytest.fixture
def none() -> Iterator[Sandbox]:
    """No sandbox."""
    sandbox, _ = choose_sandbox("none")
    yield sandbox
    sandbox.close()


@pytest.fixture(params=["none", "bwrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each kind in turn."""
    chosen: Sandbox = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def unit(sandbox: Sandbox, tmp_path: Path) -> Unit:
    """An attempt's folder for each kind of sandbox."""
    return Unit.make(sandbox, tmp_path / "unit")


@pytest.fixture
def confined(bwrap: Sandbox, tmp_path: Path) -> Unit:
    """An attempt's folder for bubblewrap."""
    return Unit.make(bwrap, tmp_path / "unit")


@pytest.fixture
def bell(tmp_path: Path, unit: Unit) -> Iterator[Bell]:
    """By which the agent tells that it has come to a certain place."""
    made = Bell(unit.work)
    yield made
    made.close()


@pytest.fixture
def mark() -> str:
    """A number of seconds so long and so odd that a `sleep` of it can only be this test's."""
    return str(10**9 + secrets.randbelow(10**9))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that outlive what they start."""
    with ThreadPoolExecutor(4) as made:
        yield made
