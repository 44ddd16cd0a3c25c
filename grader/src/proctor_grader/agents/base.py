"""Naming an agent: `command:LINE`, `replay:FILE`, `oracle` or `none`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum

from proctor_grader.errors import UserError
from proctor_grader.problems import suggestion


class AgentKind(StrEnum):
    """How an agent does its work."""

    COMMAND = "command"
    REPLAY = "replay"
    ORACLE = "oracle"
    NONE = "none"


_WITH_ARGUMENT = {AgentKind.COMMAND: "LINE", AgentKind.REPLAY: "FILE"}
_FORMS = "command:LINE, replay:FILE, oracle or none"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent as named.

    Attributes:
        argument: the command line, or the replay file's path; empty for the canaries.
    """

    kind: AgentKind
    argument: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of a command agent's line."""
        return tuple(shlex.split(self.argument))

    def __str__(self) -> str:
        """Return the agent as it is named on the command line."""
        return f"{self.kind.value}:{self.argument}" if self.argument else self.kind.value


def parse_agent(text: str) -> AgentSpec:
    """Read what stands after `--agent`.

    Raises:
        UserError: there is no such kind, or its argument is missing or not to be split.
    """
    if not text.strip():
        raise UserError("is missing", where="--agent", remedy=f"use {_FORMS}")
    name, colon, argument = text.partition(":")
    known = [kind.value for kind in AgentKind]
    if name not in known:
        raise UserError(
            f"unknown agent '{name}'{suggestion(name, known)}",
            where="--agent",
            remedy=f"use {_FORMS}",
        )
    kind = AgentKind(name)
    wanted = _WITH_ARGUMENT.get(kind)
    if wanted is None and colon:
        raise UserError(f"'{name}' takes no argument", where="--agent", remedy=f"use {name}")
    if wanted is not None and not argument.strip():
        raise UserError(
            f"'{name}' needs an argument", where="--agent", remedy=f"use {name}:{wanted}"
        )
    spec = AgentSpec(kind, argument)
    if kind is AgentKind.COMMAND:
        try:
            words = spec.argv
        except ValueError as error:
            raise UserError(
                f"the command line can't be split into words ({error})",
                where="--agent",
                remedy="close the quotes",
            ) from error
        if not words or not words[0]:
            raise UserError("the command line is empty", where="--agent", remedy=f"use {_FORMS}")
    return spec
