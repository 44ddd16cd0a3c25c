"""Whatever a manifest holds, loading it ends with places and messages, never with an exception."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor_grader.formats.eval_json import parse_manifest
from proctor_grader.formats.exact import finite_number
from proctor_grader.formats.repo import FaultKind, FileFault
from proctor_grader.formats.strict_json import InvalidJsonError, JsonNumber, parse_json
from proctor_grader.jsontext import dump_json
from proctor_grader.model.task import TaskClass
from proctor_grader.problems import ProblemLog, Severity

texts = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        ["a", "read", "write", "checks", "model_rebuilt", "full", "m.t", "../x", "1.5"]
    ),
)
numbers = st.one_of(
    st.integers(-5, 100), st.floats(allow_nan=False, allow_infinity=False), st.integers()
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that look like the format's: each key often sound, sometimes anything at all."""
    known = {key: field | values for key, field in fields.items()}
    unknown = st.dictionaries(texts, values, max_size=1)
    return st.tuples(st.fixed_dictionaries({}, optional=known), unknown).map(
        lambda both: {**both[1], **both[0]}
    )


tables = st.lists(st.sampled_from(["m.t", "a", " b.c.d ", "x y"]) | values, max_size=3)
columns = st.lists(texts | values, max_size=3)
checks = st.lists(
    objects(name=texts, value=numbers | texts, tolerance=numbers) | values, max_size=3
)
grades = objects(
    kind=st.sampled_from(["checks", "model_rebuilt"]),
    model=st.just("m.t"),
    expect=objects(
        row_count=st.integers(0), row_count_tolerance=numbers, grain=columns, columns=columns
    ),
)
classes = st.sampled_from(["read", "write"])
tasks = objects(
    **{"class": classes},
    id=texts | st.integers(),
    kind=texts,
    title=texts,
    why=texts,
    prompt=texts,
    prompt_text=texts,
    doc=texts,
    gt=texts | numbers,
    checks=checks,
    grade=grades,
    covers=tables,
    builds=tables,
    capture=objects(tables=tables, mode=texts, sample_rows=st.integers()),
    setup=texts,
    teardown=texts,
)
manifests = objects(
    name=texts,
    description=texts,
    project_repo=texts,
    build_fingerprint=texts,
    defaults=objects(**{"tolerance": numbers, "class": classes}),
    setup=objects(timeout_seconds=st.integers(), env_file=texts),
    tasks=st.lists(tasks | values, max_size=4),
)


class AnyFiles:
    """Files whose fate depends on their name alone."""

    def read_text(self, path: str) -> str | FileFault:
        kinds = list(FaultKind)
        number = sum(map(ord, path)) % (len(kinds) + 2)
        return FileFault(kinds[number], path) if number < len(kinds) else f"A={path}\n"

    def find(self, path: str) -> FileFault | None:
        found = self.read_text(path)
        return found if isinstance(found, FileFault) else None


@given(manifests)
def test_every_document_is_judged(document: dict[str, Any]) -> None:
    problems = ProblemLog()
    parsed = parse_json(json.dumps(document))
    assert isinstance(parsed, dict)
    manifest = parse_manifest(parsed, AnyFiles(), "set", problems)
    assert all(problem.where and problem.message for problem in problems.problems)
    if "tasks" not in document:
        assert ("tasks", Severity.ERROR) in {(p.where, p.severity) for p in problems.problems}
    ids = [task.id for task in manifest.tasks]
    assert len(set(ids)) == len(ids)
    for task in manifest.tasks:
        assert task.id == task.id.strip() != ""
        assert task.prompt.strip()
        if task.task_class is TaskClass.READ:
            assert (task.setup, task.teardown, task.capture) == (None, None, None)
        if task.capture is not None:
            assert len(set(task.capture.tables)) == len(task.capture.tables) > 0
        dump_json(task.to_json())


@given(manifests)
def test_a_task_without_a_fault_is_loaded_and_one_with_a_fault_is_not(
    document: dict[str, Any],
) -> None:
    problems = ProblemLog()
    parsed = parse_json(json.dumps(document))
    assert isinstance(parsed, dict)
    manifest = parse_manifest(parsed, AnyFiles(), "set", problems)
    entries = document.get("tasks")
    count = len(entries) if isinstance(entries, list) else 0
    faulty = {
        problem.where.partition("]")[0]
        for problem in problems.problems
        if problem.severity is Severity.ERROR and problem.where.startswith("tasks[")
    }
    assert len(manifest.tasks) == count - len(faulty)


@given(st.text() | values.map(json.dumps) | st.text('{}[]",:\\ud80a1eE+-. \n', max_size=40))
def test_strict_json_reads_what_the_standard_library_reads(text: str) -> None:
    reason = ""
    parsed = None
    try:
        parsed = parse_json(text)
    except InvalidJsonError as error:
        reason = str(error)
    if reason:
        reason.encode()
        return
    assert _plain(parsed) == json.loads(text, parse_float=Decimal)
    json.dumps(_plain(parsed, float), ensure_ascii=False).encode()


def _plain(value: Any, number: type = Decimal) -> Any:
    if isinstance(value, JsonNumber):
        return number(value.text)
    if isinstance(value, list):
        return [_plain(entry, number) for entry in value]
    if isinstance(value, dict):
        return {key: _plain(entry, number) for key, entry in value.items()}
    return value


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?", fullmatch=True)
)
def test_numbers_are_exact_or_out_of_bounds(text: str) -> None:
    number = finite_number(JsonNumber(text))
    mantissa, _, exponent = text.lower().partition("e")
    if not Decimal(mantissa):
        assert number == 0
    elif len(exponent.lstrip("+-0")) > 4:
        assert number is None
    else:
        inside = Decimal("1e-308") <= abs(Decimal(text)) < Decimal("1e308")
        assert number == (Decimal(text) if inside else None)
