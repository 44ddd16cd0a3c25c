"""Turns what an agent left into evidence: stored, with digests, its marker last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proctor_grader import contract
from proctor_grader.agents.transcript import EventUsageReader, ResultReader
from proctor_grader.jsontext import dump_bytes, load_json
from proctor_grader.model.process import ProcessEnd
from proctor_grader.model.unit import Stage
from proctor_grader.pod.evidence import Evidence
from proctor_grader.pod.intake import Intake
from proctor_grader.pod.workspace import mask_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.model.result import StageRecord
    from proctor_grader.pod.prepare import Layout
    from proctor_grader.store.base import Store
    from proctor_grader.store.layout import AttemptKeys
    from proctor_grader.store.redact import Masker


def collect(
    layout: Layout,
    end: ProcessEnd,
    record: StageRecord,
    *,
    store: Store,
    keys: AttemptKeys,
    masker: Masker,
) -> Evidence:
    """Store what an agent left, and its marker last.

    Args:
        layout: the attempt's folders; nothing of the agent runs any more.
        end: how the process ended, by the harness's word.
        record: the same as it stands in the marker.
        store: where to.
        keys: of the attempt.
        masker: knows the credentials that the agent was given.

    Raises:
        StoreError: the store is gone; nothing counts as collected.
    """
    said, noted, events = ResultReader(), ResultReader(), EventUsageReader()
    with Intake(store, keys.agent_file, masker, layout.root) as intake:
        intake.take(layout.input, contract.PROMPT_NAME, contract.MAX_LOG_BYTES)
        intake.take(layout.logs, contract.STDOUT_LOG, contract.MAX_LOG_BYTES, said)
        intake.take(layout.logs, contract.STDERR_LOG, contract.MAX_LOG_BYTES)
        intake.take(layout.output, contract.TRANSCRIPT_FILE, contract.MAX_LOG_BYTES, noted)
        intake.take(layout.output, contract.EVENTS_FILE, contract.MAX_LOG_BYTES, events)
        answer, source = _take_answer(intake, layout, said, noted)
        _take_workspace(intake, layout, masker)
        if end.output_truncated:
            intake.notes.append("it printed more than was kept")
        intake.put(contract.EXIT_FILE, dump_bytes(end.to_json()))
    evidence = Evidence(
        answer=answer,
        end=end,
        answer_source=source,
        usage=events.usage or said.usage or noted.usage,
        notes=tuple(dict.fromkeys(intake.notes)),
        files=intake.files,
    )
    store.put(keys.marker(Stage.AGENT), dump_bytes(_marker(evidence, record)))
    return evidence


def load_evidence(store: Store, keys: AttemptKeys) -> Evidence:
    """Read an attempt's evidence back, to grade it again.

    Raises:
        NotStored: the attempt has none, or not whole.
    """
    marker = load_json(store.get(keys.marker(Stage.AGENT)))
    end = load_json(store.get(keys.agent_file(contract.EXIT_FILE)))
    answer = None
    if marker["answer_source"]:
        answer = _text(store.get(keys.agent_file(contract.ANSWER_FILE)))
    return Evidence(
        answer=answer,
        end=ProcessEnd.from_json(end),
        answer_source=marker["answer_source"],
        usage=marker["usage"],
        notes=tuple(marker["notes"]),
        files=marker["files"],
    )


def _marker(evidence: Evidence, record: StageRecord) -> Mapping[str, Any]:
    return record.to_json() | {
        "answer_source": evidence.answer_source,
        "usage": dict(evidence.usage),
        "notes": list(evidence.notes),
        "files": dict(sorted(evidence.files.items())),
    }


def _take_answer(
    intake: Intake, layout: Layout, said: ResultReader, noted: ResultReader
) -> tuple[str | None, str]:
    """The final answer: `answer.txt`, else a transcript's last result; never a log's tail.

    It is stored as `answer.txt` in any case, and read as it is stored.
    """
    data = intake.take_bytes(layout.output, contract.ANSWER_FILE, contract.MAX_ANSWER_BYTES)
    if data is not None:
        return _text(data), contract.ANSWER_FILE
    for reader, source in ((said, contract.STDOUT_LOG), (noted, contract.TRANSCRIPT_FILE)):
        if reader.result is not None:
            data = reader.result.encode("utf-8", "replace")[: contract.MAX_ANSWER_BYTES]
            intake.put(contract.ANSWER_FILE, data)
            return _text(data), source
    return None, ""


def _take_workspace(intake: Intake, layout: Layout, masker: Masker) -> None:
    """Keep the working directory as an archive, if the agent left a mark on it."""
    if not layout.before.differs_from(layout.work):
        return
    from proctor_grader.store.archive import pack_tree  # noqa: PLC0415 - most agents leave nothing

    path = layout.root / contract.WORKSPACE_ARCHIVE
    try:
        mask_tree(layout.work, masker, layout.root)
        packed = pack_tree(
            layout.work,
            path,
            max_files=contract.MAX_WORKSPACE_FILES,
            max_bytes=contract.MAX_WORKSPACE_BYTES,
        )
    except (FileNotFoundError, NotADirectoryError):
        intake.notes.append("the working directory is gone or was replaced")
        return
    if packed.truncated:
        intake.notes.append(
            f"workspace: only {packed.files} files of {packed.bytes} bytes were kept (at most "
            f"{contract.MAX_WORKSPACE_FILES} files of {contract.MAX_WORKSPACE_BYTES} bytes)"
        )
    if packed.skipped_count:
        first = packed.skipped[0]
        intake.notes.append(
            f"workspace: left out {packed.skipped_count}, first '{first.path}': {first.reason}"
        )
    if packed.files:
        intake.put_file(contract.WORKSPACE_ARCHIVE, path)
    path.unlink()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
