"""What verbs print: tables to stdout, warnings and problems to stderr, JSON when asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor_grader.jsontext import dump_json
from proctor_operator.cli.streams import silence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proctor_grader.problems import Problem

OUTCOME_STYLES = {
    "passed": "green",
    "failed": "red",
    "error": "magenta",
    "ungraded": "yellow",
    "cancelled": "dim",
}


class _Console(Console):
    """Falls silent when nobody reads any more, where Rich would end the program with 1."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        silence(self.file)


def console() -> Console:
    """Return a console on stdout; its colours go away when nobody looks."""
    return _Console(soft_wrap=True, highlight=False)


def error_console() -> Console:
    """Return a console on stderr."""
    return _Console(stderr=True, soft_wrap=True, highlight=False)


def print_json(value: Any) -> None:
    """Print JSON with exact decimals to stdout."""
    try:
        sys.stdout.write(dump_json(value, indent=2) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def visible(text: str) -> str:
    """Make control characters of untrusted text harmless for a terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\x{ord(character):02x}"
        for character in text
    )


def one_line(text: str, width: int = 200) -> str:
    """Fit untrusted text on one line."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def counted(number: int, noun: str) -> str:
    """Return `1 error`, `2 errors`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_problems(errors: Iterable[Problem], warnings: Iterable[Problem]) -> None:
    """Print every problem of a set with its place, errors last so that they stay in sight."""
    out = error_console()
    for style, word, problems in (("yellow", "warning", warnings), ("red", "error", errors)):
        for problem in problems:
            out.print(
                Text.assemble(
                    (word, style),
                    f" {one_line(problem.where)}: {visible(problem.message)}",
                )
            )


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a plain table; cells are text, never markup."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row))
    return grid


def outcome_text(outcome: str, shown: str | None = None) -> Text:
    """Return an outcome (or a verdict that maps to it) in its colour."""
    return Text(shown or outcome, style=OUTCOME_STYLES.get(outcome, ""))
