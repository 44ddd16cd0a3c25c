"""The one template environment: whatever a template prints is masked, made visible and escaped.

Text that is already HTML comes only from this package's own renderers, as `Markup`.
"""

from __future__ import annotations

import shutil
from functools import cache, lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from proctor_grader.report import display

if TYPE_CHECKING:
    from pathlib import Path

ASSETS = ("report.css", "report.js")
_REMEMBERED = 200
"""Texts up to this length repeat (ids, words, stages) and are worth remembering."""


@lru_cache(maxsize=4_096)
def _shown_short(text: str) -> display.Shown:
    return display.shown(text)


def _print(value: Any) -> Any:
    if not isinstance(value, str) or isinstance(value, (Markup, display.Shown)):
        return value
    return _shown_short(value) if len(value) <= _REMEMBERED else display.shown(value)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("proctor_grader.report"),
        autoescape=True,
        finalize=_print,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters.update(
        count_of=display.count_of,
        duration=display.duration,
        excerpt=display.excerpt,
        moment=display.moment,
        one_line=display.one_line,
        size=display.size,
    )
    environment.globals.update(signs=display.OUTCOME_SIGNS)
    return environment


def template(name: str) -> Template:
    """Return a template by file name."""
    return _environment().get_template(name)


def write_assets(folder: Path) -> None:
    """Copy style sheet and script beside the pages, so that none carries its own copy."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ASSETS:
        with as_file(files("proctor_grader.report") / "templates" / name) as path:
            shutil.copyfile(path, folder / name)
