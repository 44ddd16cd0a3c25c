"""What a run shows while it is under way: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import (
    Progress as RichProgress,
)
from rich.text import Text

from proctor_operator.cli.render import error_console, one_line, outcome_text

if TYPE_CHECKING:
    from types import TracebackType

    from proctor_grader.model.unit import Unit
    from proctor_operator.plan.snapshot import RecordedResult

LINES_WITHOUT_TERMINAL = 50
"""Units told one by one; in longer runs every hundredth is told."""


class Progress:
    """Tells a person on stderr what happens; says nothing when `quiet` but notices."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = error_console()
        self._quiet = quiet
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._total = 0
        self._done = 0
        self._last = ""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar off the terminal."""
        self.stop()

    def stop(self) -> None:
        """Take the bar off the terminal; idempotent."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def notice(self, text: str) -> None:
        """Tell something that a reader should know, once."""
        self._print(Text.assemble(("notice", "yellow"), f" {text}"))

    def phase(self, text: str) -> None:
        """Tell what the run does as a whole."""
        if self._quiet or text == self._last:
            return
        self._last = text
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text)
        elif not self._console.is_terminal:
            self._print(Text(text))

    def begin(self, total: int, done: int = 0) -> None:
        """Start counting units."""
        self._total, self._done = total, done
        if self._quiet or not self._console.is_terminal:
            return
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("running", total=total, completed=done)
        self._bar.start()

    def unit_done(self, unit: Unit, result: RecordedResult | None) -> None:
        """Tell how a unit ended."""
        self._done += 1
        if self._quiet:
            return
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
            return
        if self._total > LINES_WITHOUT_TERMINAL and self._done % 100 and self._done < self._total:
            return
        verdict = (
            Text("unfinished", style="magenta")
            if result is None
            else outcome_text(result.outcome.value, result.verdict.value)
        )
        count = f"[{self._done}/{self._total}]"
        self._print(Text.assemble(f"{count} {one_line(unit.task_id, 80)} ", verdict))

    def _print(self, text: Text) -> None:
        with contextlib.suppress(OSError):  # a full disk below a log must not end a run
            self._console.print(text)
