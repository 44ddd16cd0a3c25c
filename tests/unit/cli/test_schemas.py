"""The schemas are closed, explain every key, and say what the documents' own code writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs

from proctor_grader.gates import GateSpec
from proctor_grader.jsontext import dump_json
from proctor_grader.model.result import Cause, Outcome, StageRecord, UnitResult, Verdict
from proctor_grader.model.run import RunEnd
from proctor_grader.model.task import TaskClass, TaskId
from proctor_grader.model.unit import RunId, Stage, Unit, UnitId
from proctor_operator.cli.app import app
from proctor_operator.local.runplan import RunOptions, RunPlan
from proctor_operator.plan.spec import Timeouts
from tests.make.schema import faults, schemas

VERBS = sorted(str(command.name) for command in app.registered_commands)
DOCUMENTS = ["document-plan", "document-result", "document-run"]
VARIANTS = ["run-dry", "show-task"]
MAY_BE_ABSENT = {
    "check": {"row_count", "row_count_tolerance", "grain", "columns"},
    "document-result": {
        *("relation", "candidates", "rows", "distinct", "with_null"),
        *("exists", "kind", "row_count", "columns", "grain", "sum"),
        *("file", "file_rows", "file_bytes", "sample_clamped", "refused", "truncated", "error"),
        *("input_tokens", "output_tokens", "cache_creation_input_tokens"),
        *("cache_read_input_tokens", "usd", "turns"),
    },
}


def parts(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every subschema with its place."""
    if isinstance(schema, dict):
        if "properties" in schema or "type" in schema or "$ref" in schema:
            yield place, schema
        for key, value in schema.items():
            yield from parts(value, f"{place}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from parts(value, f"{place}/{index}")


def test_every_verb_and_document_has_a_schema() -> None:
    assert set(schemas()) == {*VERBS, *DOCUMENTS, *VARIANTS}


@pytest.mark.parametrize("name", sorted(schemas()))
def test_schema_is_valid_closed_and_explained(name: str) -> None:
    schema = schemas()[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("/draft/2020-12/schema")
    assert schema["title"]
    assert schema["description"]
    for place, part in parts(schema):
        if part.get("type") == "object":
            assert "additionalProperties" in part, place
        properties = part.get("properties", {})
        lost = set(properties) - set(part.get("required", []))
        assert lost <= MAY_BE_ABSENT.get(name, set()), place
        for key, value in properties.items():
            told = value.get("description") or explained(value)
            assert told, f"{place}/{key} has no description"


def explained(value: dict[str, Any]) -> str:
    """The description of what a reference into the same file or another one stands for."""
    file, _, path = value.get("$ref", "").partition("#/$defs/")
    if not file and not path:
        return ""
    for schema in [schemas()[file.removesuffix(".json")]] if file else schemas().values():
        target = schema.get("$defs", {}).get(path) if path else schema
        if target:
            return str(target.get("description", ""))
    return ""


def enum_of(name: str, *path: str) -> set[Any]:
    """The words that a schema admits at a place."""
    found: Any = schemas()[name]
    for key in path:
        found = found[key]
    return set(found["enum"])


def test_closed_lists_are_those_of_the_model() -> None:
    result = ("document-result", "properties")
    assert enum_of(*result, "verdict") == {verdict.value for verdict in Verdict}
    assert enum_of(*result, "outcome") == {outcome.value for outcome in Outcome}
    assert enum_of(*result, "cause") == {cause.value for cause in Cause} | {None}
    assert enum_of("document-run", "properties", "end") == {end.value for end in RunEnd}
    stages = enum_of(*result, "stages", "propertyNames")
    assert stages == {stage.value for stage in Stage}


WHEN = "2026-11-30T09:00:00+00:00"


def make_result() -> UnitResult:
    return UnitResult(
        unit=UnitId("a-1"),
        task=TaskId("a"),
        variant="default",
        trial=1,
        attempt=2,
        verdict=Verdict.ERROR,
        cause=Cause.AGENT,
        stages={"agent": StageRecord(ok=True, started_at=WHEN, ended_at=WHEN)},
    )


def make_plan() -> RunPlan:
    return RunPlan(
        id=RunId("run-20261130-090000-abc123"),
        set_name="s",
        format="eval-json",
        commit="",
        started_at=WHEN,
        options=RunOptions("none", timeouts=Timeouts(run=5), gates=GateSpec(Decimal("80.5"))),
        units=(Unit(UnitId("a-1"), TaskId("a"), TaskClass.READ),),
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("document-result", dump_json(make_result().to_json()), id="result"),
        pytest.param("document-plan", make_plan().to_bytes().decode(), id="plan"),
    ],
)
def test_a_key_too_many_or_too_few_is_noticed(name: str, text: str) -> None:
    document = json.loads(text)
    assert faults(name, document) == []
    for key in document:
        assert faults(name, {one: document[one] for one in document if one != key}), key
    assert faults(name, document | {"surprise": 1})


def test_options_and_timeouts_of_a_plan_are_all_named() -> None:
    options = schemas()["document-plan"]["properties"]["options"]["properties"]
    assert set(options) == {one.name for one in fields(RunOptions)}
    assert set(options["timeouts"]["properties"]) == {one.name for one in fields(Timeouts)}
    assert set(options["gates"]["properties"]) == {one.name for one in fields(GateSpec)}
