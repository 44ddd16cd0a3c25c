"""Which relation or column a declared name means. Pure; the same for grading and captures.

Source: eval-json format, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor_grader.warehouse.base import Column, Relation


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a table's name stands for.

    Attributes:
        relation: None if there is none, or more than one could be meant.
        candidates: those that could be meant, more than one; else empty.
    """

    relation: Relation | None = None
    candidates: tuple[Relation, ...] = ()


def resolve_relation(relations: Sequence[Relation], name: str) -> Resolved:
    """Find the relation a name of one to three parts means; a database part is not looked at.

    Spelled exactly comes before a difference in case only. Among several, a name without a schema
    means the one in the default schema; a name with a schema must fit exactly one.
    """
    *schemas, own = name.split(".")[-2:]
    for fold in (str, str.lower):
        fitting = tuple(
            relation
            for relation in relations
            if fold(relation.name) == fold(own)
            and all(fold(relation.schema) == fold(schema) for schema in schemas)
        )
        if fitting:
            return _chosen(fitting, has_schema=bool(schemas))
    return Resolved()


def _chosen(fitting: tuple[Relation, ...], *, has_schema: bool) -> Resolved:
    if len(fitting) > 1 and not has_schema:
        default = [relation for relation in fitting if relation.is_default_schema]
        if len(default) == 1:
            return Resolved(default[0])
    return Resolved(fitting[0]) if len(fitting) == 1 else Resolved(candidates=fitting)


@dataclass(frozen=True, slots=True)
class ResolvedColumns:
    """What column names stand for.

    Attributes:
        found: the columns meant, as the table spells them, in the order asked, each once.
        missing: names that no column fits.
        ambiguous: names that fit more than one column and none exactly.
    """

    found: tuple[str, ...]
    missing: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every name stands for one column."""
        return not self.missing and not self.ambiguous


def resolve_columns(columns: Sequence[Column], names: Sequence[str]) -> ResolvedColumns:
    """Find the columns that names mean: spelled exactly, else the only one but for case."""
    exact = {column.name for column in columns}
    found: dict[str, None] = {}
    missing: list[str] = []
    ambiguous: list[str] = []
    for name in names:
        near = [column.name for column in columns if column.name.lower() == name.lower()]
        if name in exact:
            found[name] = None
        elif len(near) == 1:
            found[near[0]] = None
        else:
            (ambiguous if near else missing).append(name)
    return ResolvedColumns(tuple(found), tuple(missing), tuple(ambiguous))
