"""Reading a YAML or JSON file without surprises: every value is the text that stands there.

No date, no `yes` that becomes true, no `1:30` that becomes 90, no `1.10` that loses its zero. Only
null stays null, and true and false stay themselves in JSON, where they can't be meant as text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from proctor_grader.errors import UserError

MAX_BYTES = 64 * 1024 * 1024
_JSON_SUFFIX = ".json"


class _Loader(yaml.SafeLoader):
    """YAML whose scalars are text or null, and in which no key stands twice."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    loaded: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _problem("a key must be text", key_node)
        key = key_node.value
        if key in loaded:
            raise _problem(f"duplicate key '{key}'", key_node)
        loaded[key] = loader.construct_object(value_node, deep=True)
    return loaded


def _problem(text: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load_document(path: Path) -> Any:
    """Load a file: JSON if it is named so, else YAML.

    Raises:
        UserError: it can't be read; names the line where there is one.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"is larger than {MAX_BYTES} bytes", where=str(path))
        text = path.read_text("utf-8-sig")
    except OSError as error:
        words = (error.strerror or type(error).__name__).lower()
        raise UserError(f"can't be read ({words})", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8", where=str(path), remedy="save it as UTF-8") from error
    return _load_json(path, text) if path.suffix == _JSON_SUFFIX else _load_yaml(path, text)


def _load_yaml(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = str(path) if mark is None else f"{path}:{mark.line + 1}"
        reason = getattr(error, "problem", None) or "unreadable characters"
        raise UserError(f"is no valid YAML ({reason})", where=place) from error
    except RecursionError as error:
        raise UserError("is nested too deeply", where=str(path)) from error


def _load_json(path: Path, text: str) -> Any:
    try:
        return json.loads(
            text,
            parse_int=str,
            parse_float=str,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}"
        raise UserError(f"is no valid JSON ({error.msg.lower()})", where=place) from error
    except ValueError as error:
        raise UserError(f"is no valid JSON ({error})", where=str(path)) from error
    except RecursionError as error:
        raise UserError("is nested too deeply", where=str(path)) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    loaded: dict[str, Any] = {}
    for key, value in pairs:
        if key in loaded:
            raise ValueError(f"duplicate key '{key}'")
        loaded[key] = value
    return loaded


def _refuse(constant: str) -> Any:
    raise ValueError(f"'{constant}' is no JSON")
