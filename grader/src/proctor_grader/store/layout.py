"""Every object key is built here and nowhere else.

Source: design.md, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor_grader.model.unit import RunId, Stage, UnitId

LOCAL_RUNS = "runs/local/"


@dataclass(frozen=True, slots=True)
class AttemptKeys:
    """Keys of one attempt at a unit."""

    prefix: str

    @property
    def agent(self) -> str:
        """Prefix of what the agent left, ends with `/`."""
        return f"{self.prefix}agent/"

    def agent_file(self, name: str) -> str:
        """Key of one evidence file: prompt.txt, answer.txt, transcript.jsonl, exit.json, ..."""
        return f"{self.agent}{name}"

    def marker(self, stage: Stage) -> str:
        """Key of a stage's marker, written last."""
        return f"{self.prefix}{stage.value}.json"

    def log(self, stage: Stage) -> str:
        """Key of a script's log."""
        return f"{self.prefix}{stage.value}.log"

    def capture(self, name: str) -> str:
        """Key of one capture file: summary.json or `<table>.duckdb`."""
        return f"{self.prefix}captures/{name}"


@dataclass(frozen=True, slots=True)
class RunKeys:
    """Keys of one run; `prefix` ends with `/`."""

    prefix: str

    @classmethod
    def local(cls, run_id: RunId) -> RunKeys:
        """Keys of a run on this machine."""
        return cls(f"{LOCAL_RUNS}{run_id}/")

    @property
    def plan(self) -> str:
        """Resolved spec and units; written once, claims the run's name."""
        return f"{self.prefix}plan.json"

    @property
    def run(self) -> str:
        """The finished run's totals, gates and results in force; written last of all."""
        return f"{self.prefix}run.json"

    @property
    def eval_set(self) -> str:
        """The set as it was run, so that evidence can be graded again."""
        return f"{self.prefix}inputs/set.tar.gz"

    @property
    def project(self) -> str:
        """The project tree handed to agents."""
        return f"{self.prefix}inputs/project.tar.gz"

    @property
    def units(self) -> str:
        """Prefix of all units, ends with `/`."""
        return f"{self.prefix}units/"

    def result(self, unit: UnitId, number: int = 1) -> str:
        """Key of a unit's result; number 2 and up are re-grades beside the first."""
        name = "result.json" if number == 1 else f"result-{number}.json"
        return f"{self.units}{unit}/{name}"

    def attempts(self, unit: UnitId) -> str:
        """Prefix of a unit's attempts, ends with `/`."""
        return f"{self.units}{unit}/attempts/"

    def attempt(self, unit: UnitId, number: int) -> AttemptKeys:
        """Keys of one attempt, counted from 1."""
        return AttemptKeys(f"{self.attempts(unit)}{number}/")

    def output(self, name: str) -> str:
        """Key of a run's output: results.jsonl, results.parquet, junit.xml, report/..."""
        return f"{self.prefix}{name}"
