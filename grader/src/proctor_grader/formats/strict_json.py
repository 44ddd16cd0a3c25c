"""JSON text -> plain values, stricter than the standard library and without losing a digit.

Numbers keep their source text; a key given twice, an unpaired surrogate, NaN and deep nesting are
faults. Reading takes time linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias, cast

MAX_DEPTH = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number as the author wrote it; turning it into a value is the reader's decision."""

    text: str


JsonObject: TypeAlias = "dict[str, JsonValue]"
JsonValue: TypeAlias = "str | JsonNumber | bool | list[JsonValue] | JsonObject | None"

_TYPE_NAMES = {
    str: "string",
    JsonNumber: "number",
    list: "list",
    dict: "object",
    bool: "boolean",
    type(None): "null",
}


class InvalidJsonError(ValueError):
    """The text is no JSON; its text is the reason, for people."""


def type_name(value: JsonValue) -> str:
    """Name a value's type: string, number, list, object, boolean or null."""
    return _TYPE_NAMES[type(value)]


def parse_json(text: str) -> JsonValue:
    """Return the value that the whole text stands for.

    Raises:
        InvalidJsonError: syntax, duplicate key, unpaired surrogate, NaN or infinity, or more than
            `MAX_DEPTH` nested levels.

    Source: eval-json format, F3.
    """
    try:
        value = cast("JsonValue", _DECODER.decode(text))
    except json.JSONDecodeError as error:
        reason = (
            f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
        )
        raise InvalidJsonError(reason) from None
    except RecursionError:
        raise InvalidJsonError(_TOO_DEEP) from None
    _refuse_deep_or_broken(value, may_have_surrogates=bool(_SURROGATE_ESCAPE.search(text)))
    return value


_TOO_DEEP = f"more than {MAX_DEPTH} nested levels"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                shown = key.encode("utf-8", "backslashreplace").decode("utf-8")
                raise InvalidJsonError(f'duplicate key "{shown}"')
            seen.add(key)
    return values


def _constant(name: str) -> None:
    raise InvalidJsonError(f"{name} is no JSON number")


# The C scanner, which checks what its Python twin lets pass (signs in \u escapes, other digits).
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=JsonNumber,
    parse_float=JsonNumber,
    parse_constant=_constant,
)


def _refuse_deep_or_broken(root: JsonValue, *, may_have_surrogates: bool) -> None:
    """Look at every value once, level by level; strings only where an escape could break one."""
    level: list[JsonValue] = [root]
    for depth in count(1):
        inner: list[JsonValue] = []
        for value in level:
            if isinstance(value, dict | list):
                if depth > MAX_DEPTH:
                    raise InvalidJsonError(_TOO_DEEP)
                if isinstance(value, dict):
                    inner.extend(value.values())
                    if may_have_surrogates:
                        inner.extend(value)
                else:
                    inner.extend(value)
            elif may_have_surrogates and isinstance(value, str) and _SURROGATE.search(value):
                raise InvalidJsonError("unpaired surrogate in a string")
        if not inner:
            return
        level = inner
