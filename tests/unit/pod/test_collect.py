"""Taking in what an agent left, however it left it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from proctor_grader import contract
from proctor_grader.errors import NotStored, StoreError
from proctor_grader.jsontext import load_json
from proctor_grader.model.process import ProcessEnd
from proctor_grader.model.result import StageRecord
from proctor_grader.model.unit import Stage
from proctor_grader.pod.collect import collect, load_evidence
from proctor_grader.pod.evidence import Evidence
from proctor_grader.pod.prepare import AgentInput, Layout, prepare_agent
from proctor_grader.store.layout import AttemptKeys
from proctor_grader.store.redact import Masker
from tests.make.store import MemoryStore

KEYS = AttemptKeys("runs/local/r/units/u/attempts/1/")
SECRET = "correct-horse-battery"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
END = ProcessEnd(exit_code=0, signal=None, started_at=NOW, ended_at=NOW, seconds=0.25)
GIVEN = AgentInput(task="t", prompt="How many?", variant="default", trial=1)
RESULT = json.dumps({"type": "result", "result": "from the transcript", "num_turns": 3}) + "\n"


@dataclass
class Place:
    """An attempt that is about to be collected."""

    layout: Layout
    store: MemoryStore

    @property
    def output(self) -> Path:
        return self.layout.output

    def collect(self, end: ProcessEnd = END) -> Evidence:
        return collect(
            self.layout,
            end,
            StageRecord(ok=True),
            store=self.store,
            keys=KEYS,
            masker=Masker([SECRET]),
        )

    def stored(self, name: str) -> bytes:
        return self.store.get(KEYS.agent_file(name))

    def names(self) -> set[str]:
        return {stored.key.removeprefix(KEYS.agent) for stored in self.store.list(KEYS.agent)}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    layout = Layout(tmp_path / "unit")
    prepare_agent(layout, GIVEN)
    return Place(layout, MemoryStore())


def test_an_agent_that_did_nothing_leaves_prompt_and_facts(place: Place) -> None:
    evidence = place.collect()

    assert place.names() == {"prompt.txt", "exit.json"}
    assert place.stored("prompt.txt") == b"How many?"
    assert load_json(place.stored("exit.json")) == END.to_json()
    assert evidence.answer is None
    assert evidence.answer_source == ""
    assert evidence.notes == ()
    assert evidence.end == END


def test_everything_an_agent_leaves_is_stored_with_its_digest(place: Place) -> None:
    (place.output / "answer.txt").write_text("42")
    (place.output / "transcript.jsonl").write_text("{}\n")
    (place.output / "events.jsonl").write_text('{"tool": "sql"}\n')
    (place.output / "other.txt").write_text("not asked for")
    (place.layout.logs / "stdout.log").write_text("out")
    (place.layout.logs / "stderr.log").write_text("err")
    (place.layout.work / "model.sql").write_text("select 1")

    evidence = place.collect()

    assert place.names() == {
        "prompt.txt",
        "answer.txt",
        "transcript.jsonl",
        "events.jsonl",
        "stdout.log",
        "stderr.log",
        "exit.json",
        "workspace.tar.gz",
    }
    assert evidence.answer == "42"
    assert evidence.files == {
        KEYS.agent_file(name): hashlib.sha256(place.stored(name)).hexdigest()
        for name in place.names()
    }
    with tarfile.open(fileobj=BytesIO(place.stored("workspace.tar.gz"))) as archive:
        assert archive.getnames() == ["model.sql"]


def test_the_marker_comes_last_and_holds_the_digests(place: Place) -> None:
    (place.output / "answer.txt").write_text("42")

    evidence = place.collect()

    writes = [call.key for call in place.store.calls if call.operation.startswith("put")]
    assert writes[-1] == KEYS.marker(Stage.AGENT)
    marker = load_json(place.store.get(KEYS.marker(Stage.AGENT)))
    assert marker["files"] == evidence.files
    assert marker["ok"] is True


def test_without_the_store_there_is_no_marker(place: Place) -> None:
    place.store.fail_next(operations={"put"})

    with pytest.raises(StoreError):
        place.collect()

    assert not place.store.exists(KEYS.marker(Stage.AGENT))


def test_evidence_is_read_back_as_it_was(place: Place) -> None:
    (place.output / "answer.txt").write_bytes(b"4\xff2 " + SECRET.encode())
    (place.layout.logs / "stdout.log").write_text(RESULT)
    (place.output / "events.jsonl").symlink_to("/etc/passwd")
    end = replace(END, exit_code=None, signal=9, timed_out=True, output_truncated=True)

    evidence = place.collect(end)

    assert load_evidence(place.store, KEYS) == evidence
    assert evidence.answer == "4\N{REPLACEMENT CHARACTER}2 ***"


def test_what_was_never_collected_cant_be_loaded(place: Place) -> None:
    with pytest.raises(NotStored):
        load_evidence(place.store, KEYS)


@pytest.mark.parametrize(
    ("answer", "stdout", "transcript", "expected", "source"),
    [
        pytest.param("42", RESULT, RESULT, "42", "answer.txt", id="the-file-wins"),
        pytest.param("", RESULT, "", "", "answer.txt", id="an-empty-file-is-an-answer"),
        pytest.param(
            None, RESULT, "", "from the transcript", "stdout.log", id="else-what-was-printed"
        ),
        pytest.param(
            None, "x", RESULT, "from the transcript", "transcript.jsonl", id="else-the-transcript"
        ),
        pytest.param(None, "The answer is 42\n", "", None, "", id="never-a-plain-log"),
        pytest.param(
            None,
            '{"type": "assistant", "message": {"content": [{"type": "text", "text": "42"}]}}',
            "",
            None,
            "",
            id="never-what-was-said-on-the-way",
        ),
        pytest.param(None, "", "", None, "", id="none"),
    ],
)
def test_the_final_answer(
    place: Place,
    answer: str | None,
    stdout: str,
    transcript: str,
    expected: str | None,
    source: str,
) -> None:
    if answer is not None:
        (place.output / "answer.txt").write_text(answer)
    (place.layout.logs / "stdout.log").write_text(stdout)
    (place.output / "transcript.jsonl").write_text(transcript)

    evidence = place.collect()

    assert (evidence.answer, evidence.answer_source) == (expected, source)
    assert ("answer.txt" in place.names()) == (expected is not None)


def test_a_timed_out_agents_answer_counts(place: Place) -> None:
    (place.output / "answer.txt").write_text("42")

    evidence = place.collect(replace(END, exit_code=None, signal=9, timed_out=True))

    assert evidence.answer == "42"
    assert evidence.end.timed_out


def test_known_credentials_are_in_nothing_that_is_stored(place: Place) -> None:
    line = json.dumps({"type": "result", "result": f"the password is {SECRET}"}) + "\n"
    for name in ("answer.txt", "transcript.jsonl", "events.jsonl"):
        (place.output / name).write_text(line)
    for name in ("stdout.log", "stderr.log"):
        (place.layout.logs / name).write_text(line * 40_000)
    (place.layout.work / "profiles.yml").write_text(f"password: {SECRET}")

    evidence = place.collect()

    assert SECRET not in (evidence.answer or "")
    for name in place.names() - {"workspace.tar.gz"}:
        assert SECRET.encode() not in place.stored(name), name
    with tarfile.open(fileobj=BytesIO(place.stored("workspace.tar.gz"))) as archive:
        file = archive.extractfile("profiles.yml")
        assert file is not None
        assert file.read() == b"password: ***"


def test_a_credential_is_masked_in_an_answer_taken_from_the_log(place: Place) -> None:
    line = json.dumps({"type": "result", "result": f"it is {SECRET}"})
    (place.layout.logs / "stdout.log").write_text(line)

    assert place.collect().answer == "it is ***"


def test_a_credential_at_the_limit_leaves_nothing_of_itself(place: Place) -> None:
    (place.output / "answer.txt").write_text("x" * (contract.MAX_ANSWER_BYTES - 8) + SECRET)

    answer = place.collect().answer

    assert answer is not None
    assert answer.endswith("x***")


def as_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def as_hard_link(path: Path, outside: Path) -> None:
    path.hardlink_to(outside)


def as_pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)


def as_folder(path: Path, outside: Path) -> None:
    path.mkdir()


def as_socket(path: Path, outside: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def as_broken_link(path: Path, outside: Path) -> None:
    path.symlink_to("nowhere")


HOSTILE = [as_link, as_hard_link, as_pipe, as_folder, as_socket, as_broken_link]


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__.replace("_", "-"))
@pytest.mark.parametrize("name", ["answer.txt", "transcript.jsonl", "events.jsonl"])
def test_what_is_no_plain_file_is_left_out_and_said(
    place: Place, tmp_path: Path, make: Callable[[Path, Path], None], name: str
) -> None:
    outside = tmp_path / "outside"
    outside.write_text('{"type": "result", "result": "stolen"}')
    make(place.output / name, outside)

    evidence = place.collect()

    assert name not in place.names()
    assert evidence.answer is None
    assert len(evidence.notes) == 1
    assert evidence.notes[0].startswith(f"{name}: left out")


def removed(place: Place) -> None:
    place.output.rmdir()


def replaced_by_a_link(place: Place) -> None:
    place.output.rename(place.layout.root / "moved")
    (place.layout.root / "moved/answer.txt").write_text("stolen")
    place.output.symlink_to("moved")


def replaced_by_a_file(place: Place) -> None:
    place.output.rmdir()
    place.output.write_text("stolen")


@pytest.mark.parametrize("change", [removed, replaced_by_a_link, replaced_by_a_file])
def test_an_output_folder_that_is_none_is_an_output_without_anything(
    place: Place, change: Callable[[Place], None]
) -> None:
    change(place)

    evidence = place.collect()

    assert evidence.answer is None
    assert evidence.notes == ("the folder 'output' is gone or was replaced",)


def test_a_working_directory_that_is_gone_is_said(place: Place) -> None:
    place.layout.work.rmdir()

    assert place.collect().notes == ("the working directory is gone or was replaced",)


def test_a_working_directory_replaced_by_a_link_is_not_followed(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/key").write_text("42")
    place.layout.work.rmdir()
    place.layout.work.symlink_to(tmp_path / "outside")

    evidence = place.collect()

    assert "workspace.tar.gz" not in place.names()
    assert evidence.notes == ("the working directory is gone or was replaced",)


def test_a_folder_full_of_links_to_the_system_brings_nothing_home(place: Place) -> None:
    for number in range(200):
        (place.output / f"link{number}").symlink_to("/etc")
        (place.layout.work / f"link{number}").symlink_to("/etc")

    evidence = place.collect()

    assert place.names() == {"prompt.txt", "exit.json"}
    assert len(evidence.notes) == 1
    assert "left out 200" in evidence.notes[0]


def test_an_answer_that_is_too_long_is_cut_and_said(place: Place) -> None:
    (place.output / "answer.txt").write_bytes(b"1" * (contract.MAX_ANSWER_BYTES + 1))

    evidence = place.collect()

    assert evidence.answer == "1" * contract.MAX_ANSWER_BYTES
    assert evidence.notes == (
        f"answer.txt: only the first {contract.MAX_ANSWER_BYTES} bytes were kept",
    )


def test_large_files_are_stored_in_constant_memory(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from proctor_grader.store.directory import DirectoryStore

    size = contract.MAX_LOG_BYTES + 1
    with (place.output / "transcript.jsonl").open("wb") as file:
        file.truncate(size)
    store = DirectoryStore(tmp_path / "store")

    tracemalloc.start()
    evidence = collect(
        place.layout, END, StageRecord(ok=True), store=store, keys=KEYS, masker=Masker([SECRET])
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 24 * 1024 * 1024
    assert len(store.get(KEYS.agent_file("transcript.jsonl"))) == contract.MAX_LOG_BYTES
    assert evidence.notes == (
        f"transcript.jsonl: only the first {contract.MAX_LOG_BYTES} bytes were kept",
    )
    assert sorted(path.name for path in place.layout.root.iterdir() if path.is_file()) == []


def test_an_untouched_project_is_not_stored_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "model.sql").write_text("select 1")
    layout = Layout(tmp_path / "unit")
    prepare_agent(layout, replace(GIVEN, project=project, instructions="be brief"))
    place = Place(layout, MemoryStore())

    place.collect()

    assert "workspace.tar.gz" not in place.names()


def test_a_changed_project_is_stored_whole(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "model.sql").write_text("select 1")
    (project / "other.sql").write_text("select 2")
    layout = Layout(tmp_path / "unit")
    prepare_agent(layout, replace(GIVEN, project=project))
    place = Place(layout, MemoryStore())
    (layout.work / "model.sql").write_text("select 3")

    place.collect()

    with tarfile.open(fileobj=BytesIO(place.stored("workspace.tar.gz"))) as archive:
        assert archive.getnames() == ["model.sql", "other.sql"]


def test_cut_output_is_said(place: Place) -> None:
    assert place.collect(replace(END, output_truncated=True)).notes == (
        "it printed more than was kept",
    )


@pytest.mark.parametrize(
    ("events", "stdout", "transcript", "usage"),
    [
        pytest.param(
            '{"usage": {"input_tokens": 1}}', RESULT, RESULT, {"input_tokens": 1}, id="events"
        ),
        pytest.param("", RESULT, RESULT.replace("3", "4"), {"turns": 3}, id="else-stdout"),
        pytest.param("", "", RESULT.replace("3", "4"), {"turns": 4}, id="else-the-transcript"),
        pytest.param("", "", "", {}, id="none"),
    ],
)
def test_usage_is_taken_from_the_first_that_tells_it(
    place: Place, events: str, stdout: str, transcript: str, usage: dict[str, int]
) -> None:
    (place.output / "events.jsonl").write_text(events)
    (place.layout.logs / "stdout.log").write_text(stdout)
    (place.output / "transcript.jsonl").write_text(transcript)

    assert place.collect().usage == usage
