"""The typer application and the one place where errors become exit codes.

Exit codes: 0 gates passed; 1 a gate failed or the set is invalid; 2 wrong usage or nothing
selected; 3 nothing could be carried out; 130 cancelled. Heavy libraries are imported by the verb
that needs them, because `proctor check` has to answer at once.
"""

from __future__ import annotations

import sys
import traceback

import typer

from proctor_grader.errors import ProctorError, UserError
from proctor_operator.cli import (
    check,
    diff,
    fingerprint,
    grade,
    init,
    ls,
    report,
    run,
    score,
    show,
    sweep,
)
from proctor_operator.cli.streams import let_go_of_standard_streams, open_standard_streams

EXIT_USAGE = 2
EXIT_NOT_CARRIED_OUT = 3
EXIT_CANCELLED = 130

app = typer.Typer(
    name="proctor",
    help="Evaluate data agents: sandboxed, on a warehouse branch of their own, without the answer "
    "key, with verdicts that can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - costs 20 ms, rarely asked

        typer.echo(f"proctor {version('proctor')}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Hold the options that come before a verb."""


for verb in (init, check, ls, run, show, score, fingerprint, report, grade, diff, sweep):
    verb.register(app)


def main() -> None:
    """Run the command line; a user's mistake ends in one clear line, never in a traceback."""
    open_standard_streams()
    try:
        app()
    except ProctorError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_USAGE if isinstance(error, UserError) else EXIT_NOT_CARRIED_OUT)
    except KeyboardInterrupt:
        sys.stderr.write("cancelled\n")
        sys.exit(EXIT_CANCELLED)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"error: {where}{error.strerror or error}\n")
        sys.exit(EXIT_NOT_CARRIED_OUT)
    except Exception:
        # 1 would tell a pipeline that a gate failed
        sys.stderr.write(
            f"{traceback.format_exc()}"
            "error: this is a fault of Proctor itself: please report it with the lines above\n"
        )
        sys.exit(EXIT_NOT_CARRIED_OUT)
    finally:
        let_go_of_standard_streams()
