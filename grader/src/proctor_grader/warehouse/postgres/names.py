"""Names of a branch's roles and sessions, and the mark in a role's comment. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime

from proctor_grader.errors import BranchError
from proctor_grader.warehouse.base import Mark

MAX_BYTES = 63
"""PostgreSQL cuts longer names with no more than a notice."""

APPLICATION = "proctor"
_RULE = re.compile(r"[a-z0-9-]{1,63}")
# "_" can't occur in a branch's name, so a role's name never is a branch's
_OWNER, _AGENT, _READER, _UNITS = "_owner", "_agent", "_read", "_units"
_LONGEST = max(len(suffix) for suffix in (_OWNER, _AGENT, _READER, _UNITS))
_FORMAT = "proctor-branch-1"


@dataclass(frozen=True, slots=True)
class BranchRoles:
    """The roles of one branch database.

    Attributes:
        owner: of the database itself; carries the mark and never logs in.
        agent: owns everything in the database.
        reader: the grader's.
        units: on a shared branch, what read units' own roles are members of.
    """

    owner: str
    agent: str
    reader: str
    units: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every role that may exist."""
        return (self.owner, self.agent, self.reader, self.units)


def branch_roles(name: str) -> BranchRoles:
    """Name the roles of a branch database; the name may break the rule."""
    return BranchRoles(name + _OWNER, name + _AGENT, name + _READER, name + _UNITS)


def check_name(name: str, *, has_database: bool) -> None:
    """Refuse a name that the server would take as another one, or cut.

    Raises:
        BranchError: says what is wrong.
    """
    longest = MAX_BYTES - _LONGEST if has_database else MAX_BYTES
    if not _RULE.fullmatch(name) or len(name) > longest:
        raise BranchError(
            f"'{name[:200]}' can't name a branch"
            f" (expected 1 to {longest} characters of a-z, 0-9 and '-', found {len(name)})"
        )


def name_of_owner(role: str) -> str | None:
    """Return the branch whose owner a role is; None if the role owns no branch by its name."""
    return role.removesuffix(_OWNER) if role.endswith(_OWNER) else None


def session_name(name: str) -> str:
    """Name the session that makes a branch, so that others see that it is being made."""
    whole = f"{APPLICATION}:{name}"
    if len(whole) <= MAX_BYTES:
        return whole
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{whole[: MAX_BYTES - len(digest) - 1]}~{digest}"


def render_mark(mark: Mark) -> str:
    """Write a mark as the comment of a role."""
    return json.dumps(
        {
            "format": _FORMAT,
            "installation": mark.installation,
            "run": mark.run,
            "expires": mark.expires.isoformat(),
        }
    )


def parse_mark(comment: str | None) -> Mark | None:
    """Read a role's comment; None if it is no mark."""
    try:
        found = json.loads(comment or "")
        if not isinstance(found, dict) or found["format"] != _FORMAT:
            return None
        expires = datetime.fromisoformat(found["expires"])
        mark = Mark(str(found["installation"]), str(found["run"]), expires)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return mark if expires.tzinfo else None
