"""Which models of a project the executed tasks declare."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from proctor_grader.coverage import coverage_of, layer_of, models_in
from proctor_grader.errors import UserError
from proctor_grader.model.task import Task, TaskClass, TaskId
from tests.unit.formats.setfolder import read_cases, write_set

VECTORS = read_cases("eval-json/vectors.json")


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in VECTORS if case["kind"] == kind]


@pytest.mark.parametrize("case", of_kind("layer"))
def test_layer_case(case: dict[str, Any]) -> None:
    assert layer_of(case["input"]["path"]) == case["expect"]


@pytest.mark.parametrize("case", of_kind("coverage"))
def test_coverage_case(case: dict[str, Any]) -> None:
    figures = coverage_of(case["input"]["tasks"], case["input"]["models"])
    assert {key: figures[key] for key in case["expect"]} == case["expect"]


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("MODELS/Staging/X.SQL", "staging"),
        ("models/mart/int_x.sql", "marts"),
        ("models/int/x.sql", "intermediate"),
        ("models/a/intermediate/marts/x.sql", "intermediate"),
        ("models/marts_eu/x.sql", "other"),
        ("models/a/DIM_x.sql", "marts"),
        ("models/a/xdim_x.sql", "other"),
        ("models/a/stg_x/x.sql", "other"),
        ("stg_x.sql", "staging"),
        ("marts", "other"),
        ("models\\staging\\x.sql", "staging"),
    ],
)
def test_layer_of(path: str, layer: str) -> None:
    assert layer_of(path) == layer


def test_tasks_and_layers() -> None:
    task = Task(
        id=TaskId("a"),
        title="a",
        kind="query",
        task_class=TaskClass.WRITE,
        prompt="x",
        criteria=(),
        covers=("raw.Orders", "db.marts.FCT_a"),
        builds=("stg_b",),
    )
    models = ["models/marts/fct_a.sql", "models/marts/fct_c.sql", "models/marts/fct_d.sql"]
    figures = coverage_of([task], [*models, "models/stg_b.sql", "models/other.v2.sql"])
    assert figures == {
        "declared": ["fct_a", "orders", "stg_b"],
        "models_total": 5,
        "models_covered": 2,
        "pct": Decimal("40.0"),
        "by_layer": {
            "staging": {"total": 1, "covered": 1, "pct": Decimal("100.0")},
            "marts": {"total": 3, "covered": 1, "pct": Decimal("33.3")},
            "other": {"total": 1, "covered": 0, "pct": Decimal("0.0")},
        },
        "marts_pct": Decimal("33.3"),
    }


@pytest.mark.parametrize(("covered", "pct"), [(1, "6.3"), (3, "18.8"), (15, "93.8"), (2, "12.5")])
def test_halves_go_up(covered: int, pct: str) -> None:
    names = [f"m{number}" for number in range(16)]
    figures = coverage_of([{"covers": names[:covered]}], [f"models/{name}.sql" for name in names])
    assert str(figures["pct"]) == pct
    assert figures["marts_pct"] is None


@pytest.mark.parametrize("models", [None, []])
def test_without_a_project_there_are_no_totals(models: list[str] | None) -> None:
    figures = coverage_of([{"builds": ["A.b"]}], models)
    assert figures.pop("declared") == ["b"]
    assert figures.pop("by_layer") == {}
    assert set(figures.values()) == {None}


MANIFEST = json.dumps(
    {
        "nodes": {
            "model.p.b": {"resource_type": "model", "original_file_path": "models/marts/b.sql"},
            "model.p.a": {"resource_type": "model", "path": "a.py"},
            "test.p.t": {"resource_type": "test", "original_file_path": "tests/t.sql"},
            "model.p.n": {"resource_type": "model", "original_file_path": 5},
            "odd": None,
        }
    }
)


@pytest.mark.parametrize(
    ("files", "symlinks", "models"),
    [
        pytest.param(
            {"target/manifest.json": MANIFEST, "models/z.sql": ""},
            {},
            ("a.py", "models/marts/b.sql"),
            id="the-manifest-if-it-parses",
        ),
        pytest.param(
            {"target/manifest.json": "{", "models/z.sql": "", "models/m/.y.sql": "", "x.sql": ""},
            {},
            ("models/m/.y.sql", "models/z.sql"),
            id="else-the-files",
        ),
        pytest.param(
            {"target/manifest.json": "[]", "models/z.sql": "", "models/z.yml": ""},
            {},
            ("models/z.sql",),
            id="a-manifest-of-another-kind",
        ),
        pytest.param(
            {"target/manifest.json": "[" * 100_000, "models/z.sql": ""},
            {},
            ("models/z.sql",),
            id="a-manifest-that-is-a-bomb",
        ),
        pytest.param(
            {"real.json": MANIFEST, "real/q.sql": "", "models/z.sql": ""},
            {
                "target/manifest.json": "../real.json",
                "models/l.sql": "z.sql",
                "models/d": "../real",
            },
            ("models/z.sql",),
            id="links-are-not-followed",
        ),
        pytest.param({"readme.md": ""}, {}, (), id="no-models"),
    ],
)
def test_models_in(
    files: dict[str, str | bytes],
    symlinks: dict[str, str],
    models: tuple[str, ...],
    tmp_path: Path,
) -> None:
    assert models_in(write_set(tmp_path, files, symlinks)) == models


def test_a_project_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        models_in(tmp_path / "gone")
