"""The fake obeys the contract, and fails when it is told to."""

from __future__ import annotations

import pytest

from proctor_grader.errors import AlreadyExists, StoreError, StoreFull
from tests.contract.store import StoreContract
from tests.make.store import Call, MemoryStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


def test_next_calls_fail_without_effect() -> None:
    store = MemoryStore()
    store.fail_next(2)
    for _ in range(2):
        with pytest.raises(StoreError):
            store.put("a", b"")
    assert store.objects == {}
    store.put("a", b"")
    assert store.calls == [Call("put", "a")] * 3


def test_only_named_operations_fail_with_the_given_error() -> None:
    store = MemoryStore()
    store.fail_next(operations={"put_new"}, error=lambda: StoreFull("there is no room left"))
    store.put("a", b"")
    assert store.exists("a")
    with pytest.raises(StoreFull):
        store.put_new("b", b"")
    store.put_new("b", b"")


def test_lost_reply_leaves_the_effect() -> None:
    store = MemoryStore()
    store.fail_next(reply_lost=True)
    with pytest.raises(StoreError):
        store.put_new("a", b"1")
    assert store.get("a") == b"1"
    with pytest.raises(AlreadyExists):
        store.put_new("a", b"1")


def test_calls_fail_between_two_times() -> None:
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    store.fail_between(10, 20)
    store.put("a", b"")
    for now[0] in (10.0, 19.9):
        with pytest.raises(StoreError):
            store.get("a")
        with pytest.raises(StoreError):
            list(store.list(""))
    now[0] = 20.0
    assert store.get("a") == b""
