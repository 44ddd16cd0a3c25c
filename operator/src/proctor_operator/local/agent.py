"""Agents as this machine runs them: named on the command line, checked before the start."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader import contract
from proctor_grader.agents.base import AgentKind, AgentSpec, parse_agent
from proctor_grader.agents.recording import load_recording
from proctor_grader.errors import UserError
from proctor_operator.sandbox import python_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proctor_grader.agents.recording import Recording
    from proctor_grader.model.unit import Unit
    from proctor_operator.local.runplan import RunOptions


@dataclass(frozen=True, slots=True)
class LocalAgent:
    """An agent that is ready to be run for every unit.

    Attributes:
        recording: of a replay; None for other kinds.
        env: variables handed over by name; their values are masked in evidence.
        paths: folders it may read, as `--agent-path` named them.
    """

    spec: AgentSpec
    recording: Recording | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()

    @property
    def is_process(self) -> bool:
        """Whether it runs in a process of its own; the canaries do not."""
        return self.spec.kind in (AgentKind.COMMAND, AgentKind.REPLAY)

    @property
    def readable(self) -> tuple[Path, ...]:
        """What it must be able to read beside its own folders."""
        python = python_view() if self.spec.kind is AgentKind.REPLAY else ()
        return (*python, *self.paths)

    @property
    def extra_env(self) -> dict[str, str]:
        """What is added to a clean environment."""
        own = python_environment() if self.spec.kind is AgentKind.REPLAY else {}
        return own | dict(self.env)

    @property
    def search_paths(self) -> tuple[Path, ...]:
        """Folders for its PATH: of each path its `bin` where it has one, else itself."""
        return tuple(path / "bin" if (path / "bin").is_dir() else path for path in self.paths)


def open_agent(options: RunOptions, units: Iterable[Unit]) -> LocalAgent:
    """Get an agent ready, and find out before the start what would fail for every unit.

    Raises:
        UserError: the agent is misnamed, a replay lacks entries, a variable or folder is missing.
    """
    spec = parse_agent(options.agent)
    recording = None
    if spec.kind is AgentKind.REPLAY:
        recording = load_recording(Path(spec.argument).expanduser())
        recording.refuse_missing(units)
    env = {}
    for name in options.agent_env:
        if name not in os.environ:
            raise UserError(
                f"variable '{name}' is not set", where="--agent-env", remedy=f"export {name}"
            )
        env[name] = os.environ[name]
    paths = tuple(Path(path) for path in options.agent_path)
    for path in paths:
        if not path.exists():
            raise UserError(
                f"'{path}' is not there", where="--agent-path", remedy="name an existing folder"
            )
    return LocalAgent(spec, recording, env, paths)


def python_environment() -> dict[str, str]:
    """What a process needs to run this Python with this package in it, and nothing else."""
    package = Path(contract.__file__).parent.parent
    return {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
