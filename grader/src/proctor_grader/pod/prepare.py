"""Lays out what an agent gets: its folders, its prompt, its project tree, its environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor_grader import contract
from proctor_grader.pod.project import copy_project
from proctor_grader.pod.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["AgentInput", "Layout", "base_environment", "copy_project", "prepare_agent"]

INPUT_FOLDER = "input"
_ALLOWED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")


@dataclass(slots=True)
class Layout:
    """An attempt's folder and what lies where in it.

    Attributes:
        root: the attempt's; its path is seen by the agent, so its name tells nothing.
        is_made: whether the folders are there, empty, as `make` leaves them.
        before: what the working directory held when the agent began.
        input: what the process may only read.
        prompt: the prompt, in the input.
        work: the agent's working directory.
        output: where the agent leaves its answer.
        tmp: temporary files of the process.
        home: home directory of the process, empty at first.
    """

    root: Path
    is_made: bool = False
    before: Workspace = field(default_factory=Workspace)
    input: Path = field(init=False)
    prompt: Path = field(init=False)
    work: Path = field(init=False)
    output: Path = field(init=False)
    tmp: Path = field(init=False)
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.input = self.root / INPUT_FOLDER
        self.prompt = self.input / contract.PROMPT_NAME
        self.work = self.root / "work"
        self.output = self.root / "output"
        self.tmp = self.root / "tmp"
        self.home = self.root / "home"

    @property
    def logs(self) -> Path:
        """Folder of what the process printed; not shown to it, unlike the folders in it."""
        return self.root

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder in the root."""
        return (self.input, self.work, self.output, self.tmp, self.home)

    def make(self) -> None:
        """Make all folders; the attempt's own must not exist yet.

        Raises:
            FileExistsError: the folder is taken.
        """
        self.root.mkdir(parents=True)
        for folder in self.folders:
            folder.mkdir()
        self.is_made = True


@dataclass(frozen=True, slots=True)
class AgentInput:
    """Everything an agent is given, and nothing else.

    Attributes:
        prompt: the task's, without preamble.
        preamble: of the run; empty for none.
        instructions: text of the set's `CLAUDE.md`; None without one.
        project: folder to copy, already safe to hand out; None without a project.
        dsn: of the unit's branch; empty without a warehouse.
        extra_env: variables by name that the user hands over.
        paths: folders that come first on its `PATH`.
    """

    task: str
    prompt: str
    variant: str
    trial: int
    preamble: str = ""
    instructions: str | None = None
    project: Path | None = None
    dsn: str = ""
    extra_env: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()


def prepare_agent(layout: Layout, given: AgentInput) -> dict[str, str]:
    """Lay out an attempt's folder, made unless it is, and return the agent's environment.

    Raises:
        FileExistsError: the folder is taken.
        OSError: the disk is full, or the project can't be read.
    """
    if not layout.is_made:
        layout.make()
    layout.prompt.write_bytes(_prompt(given))
    if given.project is not None:
        copy_project(given.project, layout.work)
    if given.instructions is not None:
        # After the project, and never through a link that it may hold under this name.
        place = layout.work / contract.INSTRUCTIONS_FILE
        place.unlink(missing_ok=True)
        place.write_bytes(given.instructions.encode("utf-8", "replace"))
    if given.project is not None or given.instructions is not None:
        layout.before = Workspace.of(layout.work)
    return _environment(layout, given)


def base_environment(layout: Layout, paths: Iterable[Path] = ()) -> dict[str, str]:
    """Variables that every process gets: an allow-list of the runner's, and folders of its own.

    Args:
        layout: the attempt's.
        paths: folders that come first on its `PATH`.
    """
    environment = {name: os.environ[name] for name in _ALLOWED if name in os.environ}
    search = [*map(str, paths), environment.get("PATH", os.defpath)]
    return environment | {
        "PATH": os.pathsep.join(search),
        "HOME": str(layout.home),
        "TMPDIR": str(layout.tmp),
    }


def _environment(layout: Layout, given: AgentInput) -> dict[str, str]:
    environment = base_environment(layout, given.paths) | dict(given.extra_env)
    for name in (contract.WAREHOUSE_DSN, contract.WAREHOUSE_DSN_ALIAS):
        environment.pop(name, None)
        if given.dsn:
            environment[name] = given.dsn
    return environment | {
        contract.PROMPT_FILE: str(layout.prompt),
        contract.WORKDIR: str(layout.work),
        contract.OUTPUT: str(layout.output),
        contract.TASK: given.task,
        contract.VARIANT: given.variant,
        contract.TRIAL: str(given.trial),
    }


def _prompt(given: AgentInput) -> bytes:
    preamble = f"{given.preamble.rstrip()}\n\n" if given.preamble.strip() else ""
    return (preamble + given.prompt).encode("utf-8", "replace")
