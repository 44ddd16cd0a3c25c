"""The eval-json format's `setup` block: how the set's scripts run, and their environment file."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from proctor_grader.contract import SCRIPT_NAMES
from proctor_grader.formats.exact import integer
from proctor_grader.formats.repo import FileFault
from proctor_grader.formats.strict_json import type_name
from proctor_grader.identifiers import is_plain_name
from proctor_grader.model.task import ScriptSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proctor_grader.formats.place import Place
    from proctor_grader.formats.repo import SetFiles
    from proctor_grader.formats.strict_json import JsonObject

MAX_TIMEOUT_SECONDS = 86400
_KEYS = ("timeout_seconds", "env_file")


def parse_script_settings(document: JsonObject, files: SetFiles, place: Place) -> ScriptSettings:
    """Judge the set's `setup` block.

    Source: eval-json format, T10 to T13.
    """
    given = document.get("setup", {})
    if not isinstance(given, dict):
        place.error(".setup", f"setup must be an object (found {type_name(given)})")
        return ScriptSettings()
    unsupported = sorted(key for key in given if key not in _KEYS)
    if unsupported:
        place.error(".setup", f"unsupported setup keys: {', '.join(unsupported)}")
    inner = place.inside(".setup")
    timeout = None
    if "timeout_seconds" in given:
        timeout = integer(given["timeout_seconds"])
        if timeout is None or not 1 <= timeout <= MAX_TIMEOUT_SECONDS:
            inner.error(
                ".timeout_seconds",
                f"setup.timeout_seconds must be an integer from 1 to {MAX_TIMEOUT_SECONDS}",
            )
            timeout = None
    env_file, env = _env_file(given, files, inner)
    return ScriptSettings(timeout_seconds=timeout, env_file=env_file, env=env)


def _env_file(given: JsonObject, files: SetFiles, place: Place) -> tuple[str, Mapping[str, str]]:
    path = given.get("env_file", "")
    if not isinstance(path, str):
        place.error(".env_file", f"env_file must be a string (found {type_name(path)})")
        return "", {}
    if not path:
        return "", {}
    text = files.read_text(path)
    if isinstance(text, FileFault):
        place.file_fault(
            ".env_file", text, subject="setup.env_file", missing="setup.env_file missing"
        )
        return path, {}
    env = parse_env(text, path, place)
    for name in SCRIPT_NAMES:
        if name in env:
            place.warning(".env_file", f"{path} sets {name}, which the run overrules")
    return path, MappingProxyType(env)


def parse_env(text: str, path: str, place: Place) -> dict[str, str]:
    """Return the entries of an environment file; the last one of a name wins.

    A line is `KEY=VALUE`; what follows the first `=` is the value as it is. Only line feeds end a
    line.

    Source: eval-json format, T13.
    """
    env: dict[str, str] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        # No process can be given a NUL in its environment.
        if equals and is_plain_name(name) and "\0" not in value:
            env[name] = value
        else:
            place.error(".env_file", f"{path} line {number}: expected KEY=VALUE")
    return env
