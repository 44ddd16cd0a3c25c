"""What pages are made from: one attempt's evidence, read piece by piece within limits.

A protocol, and its implementation over a run's place in a store. Texts come out masked: patterns
of secrets are recognised before a text is cut, so that no half of one is left at its edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from proctor_grader import contract
from proctor_grader.errors import NotStored
from proctor_grader.model.unit import Stage
from proctor_grader.report.display import MARGIN
from proctor_grader.report.table import CaptureReader, CaptureRows
from proctor_grader.store.layout import AttemptKeys
from proctor_grader.store.redact import redact_patterns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.unit import UnitId
    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import RunKeys

_NAMES = AttemptKeys("")
PROMPT = _NAMES.agent_file(contract.PROMPT_NAME)
ANSWER = _NAMES.agent_file(contract.ANSWER_FILE)
TRANSCRIPT = _NAMES.agent_file(contract.TRANSCRIPT_FILE)
EVENTS = _NAMES.agent_file(contract.EVENTS_FILE)
STDOUT = _NAMES.agent_file(contract.STDOUT_LOG)
STDERR = _NAMES.agent_file(contract.STDERR_LOG)
SETUP_LOG = _NAMES.log(Stage.SETUP)
TEARDOWN_LOG = _NAMES.log(Stage.TEARDOWN)

_IN_MEMORY = 1024 * 1024
_LARGEST_CAPTURE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Beginning and end of a stored text; `tail` is empty when `head` is all of it.

    Attributes:
        left_out_bytes: between head and tail.
    """

    head: str
    tail: str = ""
    left_out_bytes: int = 0
    size_bytes: int = 0


class AttemptEvidence(Protocol):
    """What one attempt left, by name below the attempt: `agent/stdout.log`, `setup.log`."""

    def files(self) -> Mapping[str, int]:
        """Names of everything stored with sizes in bytes, by name."""
        ...

    def text(self, name: str, limit: int) -> Excerpt | None:
        """A text with patterns of secrets masked; None when there is none.

        Args:
            name: one of `files`.
            limit: bytes shown at most; of a longer text a quarter is its end.
        """
        ...

    def capture_rows(self, table: str, limit: int) -> CaptureRows | None:
        """First rows of a captured table; None when no file was kept of it."""
        ...

    def place(self, name: str) -> str:
        """Where the whole lies, for people."""
        ...


class EvidenceSource(Protocol):
    """All attempts of a run. Thread-safe."""

    def open(self, unit: UnitId, attempt: int) -> AttemptEvidence:
        """The evidence of one attempt; one that left nothing has no files."""
        ...


class StoreEvidence:
    """Evidence in a store; a context manager, since captures need a folder of their own."""

    def __init__(self, store: Store, keys: RunKeys) -> None:
        self._store = store
        self._keys = keys
        self._captures = CaptureReader()

    def __enter__(self) -> StoreEvidence:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._captures.close()

    def open(self, unit: UnitId, attempt: int) -> AttemptEvidence:
        """The evidence of one attempt; lists what is there with one request."""
        keys = self._keys.attempt(unit, attempt)
        return _StoredAttempt(self._store, keys, self._captures, _sizes(self._store, keys))


def _sizes(store: Store, keys: AttemptKeys) -> dict[str, int]:
    cut = len(keys.prefix)
    return {each.key[cut:]: each.size_bytes for each in store.list(keys.prefix)}


@dataclass(frozen=True, slots=True)
class _StoredAttempt:
    _store: Store
    _keys: AttemptKeys
    _captures: CaptureReader
    _sizes: Mapping[str, int]

    def files(self) -> Mapping[str, int]:
        return self._sizes

    def text(self, name: str, limit: int) -> Excerpt | None:
        size = self._sizes.get(name)
        if size is None:
            return None
        try:
            if size <= _IN_MEMORY:
                return excerpt_of(self._store.get(self._keys.prefix + name), limit)
            with TemporaryDirectory(prefix="proctor-evidence-") as folder:
                path = Path(folder) / "text"
                self._store.get_file(self._keys.prefix + name, path)
                return _file_excerpt(path, limit)
        except NotStored:
            return None

    def capture_rows(self, table: str, limit: int) -> CaptureRows | None:
        key = self._keys.capture(f"{table}.duckdb")
        size = self._sizes.get(key[len(self._keys.prefix) :])
        if size is None:
            return None
        if size > _LARGEST_CAPTURE:
            return CaptureRows(note="the capture is too large to be read for this page")
        return self._captures.read(lambda path: self._store.get_file(key, path), limit)

    def place(self, name: str) -> str:
        return f"{self._store.url.rstrip('/')}/{self._keys.prefix}{name}"


def excerpt_of(data: bytes, limit: int) -> Excerpt:
    """Return beginning and end of a text that is in memory."""
    if len(data) <= limit:
        return Excerpt(redact_patterns(data.decode("utf-8", "replace")), size_bytes=len(data))
    head, tail = _shares(limit)
    return _excerpt(data[: head + MARGIN], data[-tail - MARGIN :], limit, len(data))


def _file_excerpt(path: Path, limit: int) -> Excerpt:
    size = path.stat().st_size
    head, tail = _shares(limit)
    with path.open("rb") as file:
        first = file.read(head + MARGIN)
        file.seek(max(size - tail - MARGIN, 0))
        return _excerpt(first, file.read(), limit, size)


def _shares(limit: int) -> tuple[int, int]:
    return limit - limit // 4, limit // 4


def _excerpt(first: bytes, last: bytes, limit: int, size: int) -> Excerpt:
    """Mask both ends with their margins, then cut; a byte limit serves as one of characters."""
    head, tail = _shares(limit)
    begin = redact_patterns(first.decode("utf-8", "replace"))
    end = redact_patterns(last.decode("utf-8", "replace"))
    # masking may shorten a text by more than its margin: then its last word may be half a secret
    begin = begin[:head] if len(begin) > head else begin.rpartition(" ")[0]
    end = end[-tail:] if len(end) > tail else end.partition(" ")[2]
    seen = sum(len(part.encode("utf-8", "replace")) for part in (begin, end))
    return Excerpt(begin, end, max(size - seen, 1), size)
