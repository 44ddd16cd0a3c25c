"""A store in memory, with faults on demand. Obeys the contract of `tests.contract.store`."""

from __future__ import annotations

import contextlib
import hashlib
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from proctor_grader.errors import AlreadyExists, NotStored, ProctorError, StoreError
from proctor_grader.store.base import StoredObject
from proctor_grader.store.key import split_folder, split_key, split_prefix
from proctor_grader.store.localfile import new_file
from proctor_grader.store.probe import probe_store

URL = "memory://store"
EVERY_OPERATION: frozenset[str] = frozenset()


def unreachable() -> ProctorError:
    """What a store raises whose server is away."""
    return StoreError("can't be reached", where=URL)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, also one that failed."""

    operation: str  # the method's name
    key: str  # or the prefix


@dataclass(slots=True)
class _Fault:
    operations: Collection[str]
    error: Callable[[], ProctorError]
    reply_lost: bool = False
    calls_left: float = math.inf
    start: float = -math.inf
    end: float = math.inf

    def hits(self, operation: str, now: float) -> bool:
        named = not self.operations or operation in self.operations
        return named and self.calls_left > 0 and self.start <= now < self.end


@dataclass(slots=True)
class MemoryStore:
    """Objects in a dict; `objects` and `calls` are there to be looked at.

    Attributes:
        objects: what is stored.
        clock: seconds, for `fail_between`.
        calls: every call so far, in order.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    calls: list[Call] = field(default_factory=list)
    _faults: list[_Fault] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def fail_next(
        self,
        calls: int = 1,
        *,
        operations: Collection[str] = EVERY_OPERATION,
        error: Callable[[], ProctorError] = unreachable,
        reply_lost: bool = False,
    ) -> None:
        """Let the next calls fail.

        Args:
            calls: how many of those that are meant.
            operations: names of the methods that are meant; all when empty.
            error: makes what is raised.
            reply_lost: whether the call takes effect all the same, as when a network loses the
                reply.
        """
        self._faults.append(_Fault(operations, error, reply_lost, calls_left=calls))

    def fail_between(
        self,
        start: float,
        end: float,
        *,
        operations: Collection[str] = EVERY_OPERATION,
        error: Callable[[], ProctorError] = unreachable,
    ) -> None:
        """Let every call fail while `start <= clock() < end`."""
        self._faults.append(_Fault(operations, error, start=start, end=end))

    @property
    def url(self) -> str:
        """No other process can open it."""
        return URL

    def check(self) -> None:
        """As the protocol says."""
        probe_store(self)

    def put(self, key: str, data: bytes, *, durable: bool = False) -> None:
        """As the protocol says; nothing is durable."""
        split_key(key)
        with self._call("put", key):
            self.objects[key] = bytes(data)

    def put_new(self, key: str, data: bytes) -> None:
        """As the protocol says."""
        split_key(key)
        with self._call("put_new", key):
            if key in self.objects:
                raise AlreadyExists(key)
            self.objects[key] = bytes(data)

    def put_file(self, key: str, path: Path) -> str:
        """As the protocol says, but for the constant memory."""
        split_key(key)
        data = path.read_bytes()
        with self._call("put_file", key):
            self.objects[key] = data
        return hashlib.sha256(data).hexdigest()

    def get(self, key: str) -> bytes:
        """As the protocol says."""
        split_key(key)
        with self._call("get", key):
            return self._found(key)

    def get_file(self, key: str, path: Path) -> None:
        """As the protocol says."""
        split_key(key)
        with self._call("get_file", key), new_file(path) as file:
            file.write(self._found(key))

    def exists(self, key: str) -> bool:
        """As the protocol says."""
        split_key(key)
        with self._call("exists", key):
            return key in self.objects

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """As the protocol says; what is stored meanwhile does not appear."""
        split_prefix(prefix)
        return self._listed(prefix)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """As the protocol says; what is stored meanwhile does not appear."""
        split_folder(prefix)
        return self._folders(prefix)

    def delete(self, key: str) -> None:
        """As the protocol says."""
        split_key(key)
        with self._call("delete", key):
            self.objects.pop(key, None)

    def _listed(self, prefix: str) -> Iterator[StoredObject]:
        with self._call("list", prefix):
            found = sorted(self.objects.items())
        yield from (StoredObject(key, len(data)) for key, data in found if key.startswith(prefix))

    def _folders(self, prefix: str) -> Iterator[str]:
        with self._call("list_folders", prefix):
            below = [key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)]
        yield from sorted({name.partition("/")[0] for name in below if "/" in name})

    def _found(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError as error:
            raise NotStored(key) from error

    @contextlib.contextmanager
    def _call(self, operation: str, key: str) -> Iterator[None]:
        with self._lock:
            self.calls.append(Call(operation, key))
            now = self.clock()
            fault = next((fault for fault in self._faults if fault.hits(operation, now)), None)
            if fault is None:
                yield
                return
            fault.calls_left -= 1
            if fault.reply_lost:
                yield
            raise fault.error()
