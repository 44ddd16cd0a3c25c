"""Taking in what an agent left. Every path it could have made is hostile.

Files are opened by name from a folder's handle, without following links and without blocking;
only regular files with one link count; numbers and sizes are bounded; memory is constant.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proctor_grader import contract
from proctor_grader.agents.transcript import TranscriptReader
from proctor_grader.jsontext import dump_bytes
from proctor_grader.model.unit import Stage
from proctor_grader.pod.evidence import Evidence
from proctor_grader.store.archive import pack_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from proctor_grader.model.process import ProcessEnd
    from proctor_grader.model.result import StageRecord
    from proctor_grader.pod.prepare import Layout
    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import AttemptKeys
    from proctor_grader.store.redact import Masker

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 256 * 1024
_IN_MEMORY = 1024 * 1024


@dataclass(slots=True)
class _Intake:
    """What is being put together while files are taken in."""

    store: Store
    keys: AttemptKeys
    masker: Masker
    scratch: Path
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, key: str, data: bytes) -> None:
        """Store bytes that are masked already."""
        self.store.put(key, data)
        self.files[key] = hashlib.sha256(data).hexdigest()

    def put_stream(self, key: str, chunks: Iterator[bytes]) -> None:
        """Store a stream of any length in constant memory, masked; an empty one is not kept."""
        masked = self.masker.mask_chunks(chunks)
        head = bytearray()
        for piece in masked:
            head += piece
            if len(head) > _IN_MEMORY:
                break
        else:
            if head:
                self.put(key, bytes(head))
            return
        path = self.scratch / "collected"
        with path.open("wb") as file:
            file.write(head)
            for piece in masked:
                file.write(piece)
        self.files[key] = self.store.put_file(key, path)
        path.unlink()


def collect(
    layout: Layout,
    end: ProcessEnd,
    record: StageRecord,
    *,
    store: Store,
    keys: AttemptKeys,
    masker: Masker,
    has_project: bool = False,
) -> Evidence:
    """Store what an agent left, and its marker last.

    Args:
        layout: the attempt's folders.
        end: how the process ended, by the harness's word.
        record: the same as it stands in the marker.
        store: where to.
        keys: of the attempt.
        masker: knows the credentials that the agent was given.
        has_project: a project tree was put into the working directory, so that it is worth
            keeping in any case.

    Raises:
        StoreError: the store is gone; nothing counts as collected.
    """
    intake = _Intake(store, keys, masker, layout.root)
    with layout.prompt.open("rb") as prompt:
        intake.put_stream(
            keys.agent_file(contract.PROMPT_NAME), iter(lambda: prompt.read(_CHUNK), b"")
        )
    reader = TranscriptReader()
    for name in (contract.STDOUT_LOG, contract.STDERR_LOG):
        _take_file(intake, layout.logs, name, contract.MAX_LOG_BYTES)
    _take_file(intake, layout.output, contract.EVENTS_FILE, contract.MAX_LOG_BYTES)
    has_transcript = _take_file(
        intake, layout.output, contract.TRANSCRIPT_FILE, contract.MAX_LOG_BYTES
    )
    for folder, name in (
        (layout.output, contract.TRANSCRIPT_FILE),
        (layout.logs, contract.STDOUT_LOG),
    ):
        if name == contract.STDOUT_LOG and has_transcript and reader.result is not None:
            break
        for chunks in _opened(folder, name, intake):
            reader.read(_bounded(chunks, contract.MAX_LOG_BYTES, []))
    answer, source = _take_answer(intake, layout, reader, has_transcript=has_transcript)
    _take_workspace(intake, layout, has_project=has_project)
    if end.output_truncated:
        intake.notes.append(f"output beyond {contract.MAX_LOG_BYTES} bytes was dropped")
    intake.put(keys.agent_file(contract.EXIT_FILE), dump_bytes(end.to_json()))
    evidence = Evidence(answer, source, dict(reader.usage), tuple(intake.notes), intake.files)
    store.put(keys.marker(Stage.AGENT), dump_bytes(_marker(evidence, record)), durable=True)
    return evidence


def _marker(evidence: Evidence, record: StageRecord) -> Mapping[str, Any]:
    return record.to_json() | {
        "answer_source": evidence.answer_source,
        "usage": dict(evidence.usage),
        "notes": list(evidence.notes),
        "files": dict(sorted(evidence.files.items())),
    }


def _take_answer(
    intake: _Intake, layout: Layout, reader: TranscriptReader, *, has_transcript: bool
) -> tuple[str | None, str]:
    """The final answer: `answer.txt`, else a transcript's last result; never a log's tail."""
    data: bytes | None = None
    source = ""
    for chunks in _opened(layout.output, contract.ANSWER_FILE, intake):
        cut: list[str] = []
        data = b"".join(_bounded(chunks, contract.MAX_ANSWER_BYTES, cut))
        source = contract.ANSWER_FILE
        if cut:
            intake.notes.append(
                f"{source}: only the first {contract.MAX_ANSWER_BYTES} bytes were kept"
            )
    if data is None and reader.result is not None:
        data = reader.result.encode("utf-8", "replace")[: contract.MAX_ANSWER_BYTES]
        source = contract.TRANSCRIPT_FILE if has_transcript else contract.STDOUT_LOG
    if data is None:
        return None, ""
    text = intake.masker.mask_bytes(data).decode("utf-8", "replace")
    intake.put(intake.keys.agent_file(contract.ANSWER_FILE), text.encode())
    return text, source


def _take_file(intake: _Intake, folder: Path, name: str, limit: int) -> bool:
    """Store one file if it is there; True if it was."""
    for chunks in _opened(folder, name, intake):
        cut: list[str] = []
        intake.put_stream(intake.keys.agent_file(name), _bounded(chunks, limit, cut))
        if cut:
            intake.notes.append(f"{name}: only the first {limit} bytes were kept")
        return True
    return False


def _take_workspace(intake: _Intake, layout: Layout, *, has_project: bool) -> None:
    """Keep the working directory as an archive, if the agent left anything in it."""
    try:
        left = [entry for entry in os.listdir(layout.work) if entry != contract.INSTRUCTIONS_FILE]
        if not has_project and not left:
            return
    except OSError:
        intake.notes.append("the working directory is gone")
        return
    path = layout.root / contract.WORKSPACE_ARCHIVE
    packed = pack_tree(
        layout.work,
        path,
        max_files=contract.MAX_WORKSPACE_FILES,
        max_bytes=contract.MAX_WORKSPACE_BYTES,
    )
    if packed.truncated:
        intake.notes.append(
            f"workspace: only {packed.files} files of {packed.bytes} bytes were kept (at most "
            f"{contract.MAX_WORKSPACE_FILES} files of {contract.MAX_WORKSPACE_BYTES} bytes)"
        )
    if packed.skipped:
        intake.notes.append(
            f"workspace: {len(packed.skipped)} links, special or unreadable files were left out"
        )
    if packed.files:
        key = intake.keys.agent_file(contract.WORKSPACE_ARCHIVE)
        intake.files[key] = intake.store.put_file(key, path)
    path.unlink(missing_ok=True)


def _opened(folder: Path, name: str, intake: _Intake) -> Iterator[Iterator[bytes]]:
    """Yield a file's chunks once, or nothing where there is no regular file of that name."""
    try:
        handle = os.open(folder, _FOLDER)
    except OSError:
        return
    try:
        descriptor = os.open(name, _FILE, dir_fd=handle)
    except FileNotFoundError:
        return
    except OSError as error:
        intake.notes.append(
            f"{name}: not a file that can be read ({os.strerror(error.errno or 0)})"
        )
        return
    finally:
        os.close(handle)
    with open(descriptor, "rb", buffering=0) as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            intake.notes.append(f"{name}: not a regular file of its own, left out")
            return
        yield iter(lambda: file.read(_CHUNK), b"")


def _bounded(chunks: Iterator[bytes], limit: int, cut: list[str]) -> Iterator[bytes]:
    """Yield at most `limit` bytes; `cut` gets an entry when there was more."""
    left = limit
    for chunk in chunks:
        if len(chunk) > left:
            cut.append("cut")
            yield chunk[:left]
            return
        left -= len(chunk)
        yield chunk
