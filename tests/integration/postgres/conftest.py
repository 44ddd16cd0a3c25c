"""A base with an adapter over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.integration.postgres.place import Place

if TYPE_CHECKING:
    from tests.services.postgres import PostgresBase, PostgresProcess


@pytest.fixture
def place(postgres_base: PostgresBase) -> Place:
    """A base on the shared server."""
    return Place(postgres_base)


@pytest.fixture
def private_place(private_postgres: Callable[..., PostgresProcess]) -> Callable[..., Place]:
    """Makes a base on a server of this test alone, with settings."""

    def make(*, closed_to_public: bool = True, **settings: str) -> Place:
        process = private_postgres(**settings)
        return Place(process.server.make_base(closed_to_public=closed_to_public), process)

    return make
