"""The name of a set whose manifest gives none. Pure."""

from __future__ import annotations

import re

_AUTHORITY = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/]*@")


def name_from_url(url: str) -> str:
    """Return the last segment of a git URL without `.git`; empty if there is none.

    Segments end at `/` and `:`; query, fragment and trailing slashes are dropped. A user and a
    password before the host never become part of a name.

    Source: eval-json format, T5.
    """
    path = re.split("[?#]", _AUTHORITY.sub(r"\1", url.strip()), maxsplit=1)[0].rstrip("/")
    return re.split("[/:]", path)[-1].removesuffix(".git")
