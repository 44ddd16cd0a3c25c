"""What a valid object key is, the same for every kind of store. Pure."""

from __future__ import annotations

import re

from proctor_grader.errors import UserError

Names = tuple[str, ...]
"""A key, split at its "/"."""

MAX_KEY_BYTES = 800
"""S3 admits 1024; the rest is left to a store's prefix."""

MAX_NAME_BYTES = 255
"""The longest file name that Linux file systems admit; versitygw has the same limit."""

TEMPORARY = ".tmp"
"""Name of the folder in which a directory store prepares its files; never part of a key."""

# A listing is XML 1.0: it can't carry control characters, and servers answer U+FFFD for them.
_UNLISTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_SHOWN = 200


def split_key(key: str) -> tuple[str, ...]:
    """Split a key into its names, at least one.

    Raises:
        UserError: no store could hold the key; the message says why.
    """
    names = tuple(key.split("/"))
    problem = _problem(key, names)
    if problem:
        raise _invalid(key, problem)
    return names


def split_prefix(prefix: str) -> tuple[tuple[str, ...], str]:
    """Split a prefix into the folders it names whole and the beginning of a name below them.

    Returns:
        `runs/local/2026-` gives `("runs", "local")` and `"2026-"`; `""` gives `()` and `""`.

    Raises:
        UserError: no key can start like that.
    """
    *folders, start = prefix.split("/")
    # Any `start` will do: `..` may begin `..b`, and it is only ever compared, never opened.
    problem = _problem(prefix, folders)
    if problem:
        raise _invalid(prefix, problem)
    return tuple(folders), start


def split_folder(prefix: str) -> tuple[str, ...]:
    """Split a prefix that names a folder, so is empty or ends with `/`, into its names.

    Raises:
        UserError: it ends elsewhere, or no key can start like that.
    """
    folders, start = split_prefix(prefix)
    if start:
        raise _invalid(prefix, "a folder's prefix ends with '/'")
    return folders


def is_key(text: str) -> bool:
    """Whether a store could hold something under this key."""
    return not _problem(text, text.split("/"))


def _problem(text: str, names: list[str] | tuple[str, ...]) -> str:
    if _UNLISTABLE.search(text):
        return "it has a character that can't be listed, such as a control character"
    size = len(text.encode())
    if size > MAX_KEY_BYTES:
        return f"it is too long (expected at most {MAX_KEY_BYTES} bytes, found {size})"
    for name in names:
        if name in {"", ".", "..", TEMPORARY}:
            return f"names between '/' must not be empty, '.', '..' or '{TEMPORARY}'"
        size = len(name.encode())
        if size > MAX_NAME_BYTES:
            return f"a name is too long (expected at most {MAX_NAME_BYTES} bytes, found {size})"
    return ""


def _invalid(text: str, problem: str) -> UserError:
    shown = ascii(text) if _UNLISTABLE.search(text) else f"'{text}'"
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}..."
    return UserError(f"is no valid key: {problem}", where=shown, reason="InvalidKey")
