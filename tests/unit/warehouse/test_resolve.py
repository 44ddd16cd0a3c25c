from __future__ import annotations

import pytest

from proctor_grader.warehouse.base import Column, Relation, RelationKind
from proctor_grader.warehouse.resolve import resolve_columns, resolve_relation


def relations(*names: str) -> tuple[Relation, ...]:
    """`schema.name`; `main` and `public` are the default schema."""
    parts = [name.split(".") for name in names]
    return tuple(
        Relation(schema, name, RelationKind.TABLE, is_default_schema=schema in {"main", "public"})
        for schema, name in parts
    )


@pytest.mark.parametrize(
    ("there", "name", "found"),
    [
        pytest.param("marts.t raw.t", "marts.t", "marts.t", id="schema-and-name"),
        pytest.param("marts.t", "prod.marts.t", "marts.t", id="database-part-is-not-used"),
        pytest.param("marts.t", "Marts.T", "marts.t", id="only-case-differs"),
        pytest.param("marts.t marts.T", "marts.T", "marts.T", id="exact-before-case"),
        pytest.param("marts.t Marts.t", "marts.t", "marts.t", id="exact-schema-before-case"),
        pytest.param("marts.t raw.u", "t", "marts.t", id="one-part-the-one-schema-that-has-it"),
        pytest.param("marts.t main.t", "t", "main.t", id="one-part-default-schema-of-several"),
        pytest.param("raw.t main.T", "t", "raw.t", id="one-part-exact-before-default-schema"),
        pytest.param("raw.T main.T", "t", "main.T", id="one-part-case-then-default-schema"),
        pytest.param("marts.t", "raw.t", None, id="another-schema"),
        pytest.param("marts.t", "u", None, id="another-name"),
        pytest.param("", "t", None, id="nothing-there"),
    ],
)
def test_resolve_relation(there: str, name: str, found: str | None) -> None:
    resolved = resolve_relation(relations(*there.split()), name)
    assert (None if resolved.relation is None else str(resolved.relation)) == found
    assert resolved.candidates == ()


@pytest.mark.parametrize(
    ("there", "name", "candidates"),
    [
        pytest.param("marts.t raw.t", "t", "marts.t raw.t", id="two-schemas-none-the-default"),
        pytest.param("marts.aB marts.Ab", "marts.AB", "marts.aB marts.Ab", id="two-by-case"),
        pytest.param("main.aB main.Ab", "ab", "main.aB main.Ab", id="two-by-case-in-the-default"),
        pytest.param("main.t Main.t", "MAIN.t", "main.t Main.t", id="a-schema-takes-no-default"),
        pytest.param("a.t b.t c.u", "t", "a.t b.t", id="only-those-that-fit"),
    ],
)
def test_an_ambiguous_name_gives_the_candidates(there: str, name: str, candidates: str) -> None:
    resolved = resolve_relation(relations(*there.split()), name)
    assert resolved.relation is None
    assert [str(each) for each in resolved.candidates] == candidates.split()


def columns(*names: str) -> list[Column]:
    return [Column(place, name, "INTEGER", True) for place, name in enumerate(names, start=1)]


@pytest.mark.parametrize(
    ("there", "asked", "found", "missing", "ambiguous"),
    [
        pytest.param("a b", "b a", "b a", "", "", id="in-the-order-asked"),
        pytest.param("Id x", "ID", "Id", "", "", id="only-case-differs"),
        pytest.param("id ID", "ID", "ID", "", "", id="exact-before-case"),
        pytest.param("id ID", "Id", "", "", "Id", id="two-by-case"),
        pytest.param("a", "a A", "a", "", "", id="the-same-column-once"),
        pytest.param("a", "a b c", "a", "b c", "", id="missing"),
    ],
)
def test_resolve_columns(there: str, asked: str, found: str, missing: str, ambiguous: str) -> None:
    resolved = resolve_columns(columns(*there.split()), asked.split())
    assert resolved.found == tuple(found.split())
    assert resolved.missing == tuple(missing.split())
    assert resolved.ambiguous == tuple(ambiguous.split())
    assert resolved.is_complete is (not missing and not ambiguous)
