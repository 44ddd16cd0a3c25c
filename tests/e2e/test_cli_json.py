"""Every verb's `-o json`, and every stored document, against the schemas of docs/schemas."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.inside import Inside
from tests.e2e.make_set import read_task, write_set, write_task, write_warehouse
from tests.make.schema import faults

AGENT = r"""
case "$PROCTOR_TASK" in
  answered) printf '%s\n' '{"type": "result", "result": "It is 42.5 or 41", "num_turns": 2,
 "total_cost_usd": 0.25, "usage": {"input_tokens": 10, "output_tokens": 3}}' | tr -d '\n';;
  crashing) exit 3;;
  *) echo nothing > "$PROCTOR_OUTPUT/answer.txt";;
esac
"""


GRADE = {
    "kind": "model_rebuilt",
    "model": "main.built",
    "expect": {"row_count": 3, "grain": ["id"], "columns": ["id", "name"]},
}


@dataclass(frozen=True)
class Place:
    """A set and warehouse with two finished runs over them."""

    call: Inside
    eval_set: Path
    warehouse: Path
    oracle: dict[str, Any]
    shell: dict[str, Any]

    def stored(self, run: str, pattern: str) -> list[str]:
        """Texts of a run's documents, by a pattern below its folder."""
        folder = self.call.store / "runs" / "local" / run
        return [path.read_text("utf-8") for path in sorted(folder.glob(pattern))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    home = tmp_path_factory.mktemp("json")
    eval_set = write_set(
        home / "set",
        read_task("answered", 42),
        read_task("crashing", 0),
        {"id": "ungraded", "prompt_text": "Tell me something.", "doc": "docs/u.md"},
        write_task("built", capture={"mode": "fingerprint+sample", "sample_rows": 2}, grade=GRADE),
        write_task("unprepared", setup="setup.sh", teardown="teardown.sh"),
        description="one of everything",
        setup={"timeout_seconds": 60},
    )
    (eval_set / "setup.sh").write_text("exit 4\n")
    (eval_set / "teardown.sh").write_text("echo bye\n")
    (eval_set / "docs").mkdir()
    (eval_set / "docs" / "u.md").write_text("# Why\n")
    script = home / "agent.sh"
    script.write_text(AGENT)
    warehouse = write_warehouse(home / "base.duckdb")
    call = Inside(home)
    options = ("--warehouse", str(warehouse), "--sandbox", "none")
    oracle = call.json("run", str(eval_set), "--agent", "oracle", *options, code=1)
    shell = call.json("run", str(eval_set), "--agent", f"command:sh {script}", *options, code=1)
    return Place(call, eval_set, warehouse, oracle, shell)


def test_run(place: Place) -> None:
    assert faults("run", place.oracle) == []
    assert faults("run", place.shell) == []
    outcomes = place.shell["record"]["variants"]["default"]["outcomes"]
    # answered: no number within the tolerance; built: nothing built; crashing: no answer left
    assert outcomes == {"passed": 0, "failed": 3, "ungraded": 1, "error": 1, "cancelled": 0}


def test_run_that_could_not_be_carried_out(place: Place) -> None:
    pinned = write_set(
        place.call.home / "pinned", read_task("a"), build_fingerprint="fp-" + "0" * 32
    )
    options = ("--agent", "none", "--warehouse", str(place.warehouse), "--sandbox", "none")
    store = ("--store", str(place.call.home / "other"))
    document = place.call.json("run", str(pinned), *options, *store, code=3)
    assert faults("run", document) == []
    assert document["record"] is None
    assert document["reason"] == "FingerprintMismatch"


def test_dry_run(place: Place) -> None:
    options = ("--agent", "none", "--warehouse", str(place.warehouse), "--dry-run")
    document = place.call.json("run", str(place.eval_set), *options)
    assert faults("run-dry", document) == []
    assert [unit["task"] for unit in document["units"]][:2] == ["answered", "crashing"]


def test_check(place: Place) -> None:
    document = place.call.json("check", str(place.eval_set))
    assert faults("check", document) == []
    assert document["tasks"][0]["criteria"][0]["value"] == 42
    broken = write_set(place.call.home / "broken", {"id": "x", "surprise": 1}, {"gt": []})
    document = place.call.json("check", str(broken), code=1)
    assert faults("check", document) == []
    assert document["errors"]
    assert document["warnings"]
    empty = place.call.home / "empty"
    empty.mkdir()
    assert faults("check", place.call.json("check", str(empty), code=1)) == []


def test_ls(place: Place) -> None:
    document = place.call.json("ls", str(place.eval_set), "--select", "class:write")
    assert faults("ls", document) == []
    assert [task["id"] for task in document] == ["built", "unprepared"]


@pytest.mark.parametrize("which", ["oracle", "shell"])
def test_show(place: Place, which: str) -> None:
    run = getattr(place, which)["run"]
    document = place.call.json("show", run)
    assert faults("show", document) == []
    assert {result["task"] for result in document["results"]} == {
        *("answered", "crashing", "ungraded", "built", "unprepared")
    }


def test_show_of_a_task(place: Place) -> None:
    document = place.call.json("show", place.shell["run"], "answered")
    assert faults("show-task", document) == []
    (result,) = document
    assert result["usage"] == {
        **{"input_tokens": 10, "output_tokens": 3},
        **{"usd": "0.25", "turns": 2},
    }


def test_every_kind_of_item_was_seen(place: Place) -> None:
    shown = [place.call.json("show", run["run"]) for run in (place.oracle, place.shell)]
    results = [result for one in shown for result in one["results"]]
    seen = {item["name"] for result in results for item in result["items"]}
    assert seen == {"answer", "exists", "row_count", "grain", "columns"}
    assert {result["verdict"] for result in results} == {
        *("CORRECT", "OFF", "ERROR", "UNGRADED", "SETUP_FAILED")
    }
    captured = [result["captures"] for result in results if result["captures"]]
    assert {name for one in captured for name in one} == {"main.built"}


@pytest.mark.parametrize(
    ("task", "options", "code"),
    [
        pytest.param("answered", ["--answer", "answer.txt"], 0, id="an answer"),
        pytest.param("answered", [], 1, id="nothing given"),
        pytest.param("built", ["--warehouse", "base.duckdb"], 1, id="a table that is not there"),
    ],
)
def test_score(place: Place, task: str, options: list[str], code: int) -> None:
    (place.call.home / "answer.txt").write_text("On 2026-01-05 it was 42, as in v1.2.3")
    document = place.call.json("score", str(place.eval_set), task, *options, code=code)
    assert faults("score", document) == []
    assert bool(document["skipped"]) == ("--answer" in options)
    assert bool(document["missing"]) == (not options)


def test_fingerprint(place: Place) -> None:
    document = place.call.json("fingerprint", str(place.warehouse))
    assert faults("fingerprint", document) == []
    assert document["fingerprint"] == place.oracle["record"]["fingerprint"]["found"]


def test_report(place: Place) -> None:
    out = place.call.home / "written"
    document = place.call.json("report", place.oracle["run"], "--out", str(out))
    assert faults("report", document) == []
    assert Path(document["report"]).is_file()


def test_diff(place: Place) -> None:
    document = place.call.json("diff", place.oracle["run"], place.shell["run"])
    assert faults("diff", document) == []
    assert document["counts"]["broken"] == 3
    assert any(condition.startswith("agent: oracle / ") for condition in document["conditions"])


def test_grade(place: Place) -> None:
    changed = json.loads((place.eval_set / "eval.json").read_text())
    changed["tasks"][0]["checks"][0]["value"] = 42.5
    other = write_set(place.call.home / "changed", *changed["tasks"])
    for name in ("setup.sh", "teardown.sh"):
        (other / name).write_text("true\n")
    store = place.call.home / "copy"  # other tests look at the run as it was
    shutil.copytree(place.call.store, store)
    run = ("--store", str(store), place.shell["run"])
    document = place.call.json("grade", *run, "--set", str(other), code=1)
    assert faults("grade", document) == []
    assert set(document["record"]["results"].values()) == {2}
    (result,) = place.call.json("show", *run, "answered")
    assert (result["verdict"], result["items"][0]["value"]) == ("CORRECT", 42.5)


def test_sweep(place: Place) -> None:
    document = place.call.json("sweep")
    assert faults("sweep", document) == []
    assert document == {"dropped": [], "runs": [], "elsewhere": [], "problems": []}


def test_init(place: Place) -> None:
    document = place.call.json("init", "fresh")
    assert faults("init", document) == []
    assert "eval.json" in document["files"]


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        pytest.param("document-plan", "plan.json", id="plan"),
        pytest.param("document-run", "run.json", id="run"),
        pytest.param("document-result", "units/*/result*.json", id="results"),
    ],
)
def test_stored_documents(place: Place, schema: str, pattern: str) -> None:
    for run in (place.oracle["run"], place.shell["run"]):
        texts = place.stored(run, pattern)
        assert texts
        for text in texts:
            assert faults(schema, json.loads(text)) == []


def test_lines_of_results_add_what_came_later(place: Place) -> None:
    (text,) = place.stored(place.shell["run"], "results.jsonl")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [faults("document-result", line) for line in lines] == [[]] * len(lines)
    (unprepared,) = [line for line in lines if line["task"] == "unprepared"]
    assert list(unprepared["stages"]) == ["branch", "setup", "teardown", "drop"]


def test_a_key_too_many_anywhere_is_noticed(place: Place) -> None:
    document = place.call.json("show", place.oracle["run"])
    for node in objects(document):
        node["surprise"] = 1
        assert faults("show", document), node
        del node["surprise"]


def objects(value: Any) -> list[dict[str, Any]]:
    """Every object in a document, itself included."""
    if isinstance(value, dict):
        return [value, *(one for each in value.values() for one in objects(each))]
    return [one for each in value for one in objects(each)] if isinstance(value, list) else []
