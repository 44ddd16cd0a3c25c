"""Plain names and what is made of them: table names, column names, environment names. Pure."""

from __future__ import annotations

import re

MAX_TABLE_PARTS = 3
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_PLAIN_NAME = re.compile(_NAME)
_TABLE = re.compile(rf"{_NAME}(?:\.{_NAME}){{0,{MAX_TABLE_PARTS - 1}}}")


def is_plain_name(text: str) -> bool:
    """Whether the text is an ASCII letter or underscore, then letters, digits and underscores."""
    return _PLAIN_NAME.fullmatch(text) is not None


def is_table_name(text: str) -> bool:
    """Whether the text is one to three plain names joined by dots.

    Source: eval-json format, R4.
    """
    return _TABLE.fullmatch(text) is not None


def has_control_character(text: str) -> bool:
    """Whether a character of the Unicode category Cc is in the text."""
    return _CONTROL.search(text) is not None


def last_part(table: str) -> str:
    """Return a table's own name, without schema and database."""
    return table.rpartition(".")[2]
