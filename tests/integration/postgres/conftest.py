"""A base with an adapter over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.integration.postgres.place import Place, Standing

if TYPE_CHECKING:
    from tests.services.postgres import PostgresBase, PostgresProcess, PostgresServer


@pytest.fixture
def place(postgres_base: PostgresBase) -> Place:
    """A base on the shared server."""
    return Place(postgres_base)


@pytest.fixture(scope="module")
def standing(postgres_server: PostgresServer) -> Iterator[Standing]:
    """A branch that the module's tests share."""
    place = Place(postgres_server.make_base())
    yield Standing(place, place.create())
    place.adapter.drop(place.name)
    postgres_server.drop_base(place.base)


@pytest.fixture
def private_place(private_postgres: Callable[..., PostgresProcess]) -> Callable[..., Place]:
    """Makes a base on a server of this test alone, with settings."""

    def make(**settings: str) -> Place:
        process = private_postgres(**settings)
        return Place(process.server.make_base(), process)

    return make
