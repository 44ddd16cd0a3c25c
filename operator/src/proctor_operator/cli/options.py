"""Arguments and options that several verbs share, so that they read the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """How a verb prints its result."""

    TEXT = "text"
    JSON = "json"


SetArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The eval set: its folder, or its eval.json.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run: its id, the path of its folder, or 'last'.")
]
OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Print a table for people, or JSON.")
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="FORMAT", help="auto, eval-json, tasks or evals; auto looks at DIR."
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Make every warning an error.")]
SelectOption = Annotated[
    list[str],
    typer.Option(
        "--select",
        metavar="EXPR",
        help="Only these tasks: an id, tag:T, category:C, kind:K, class:read|write, "
        "outcome:failed[@RUN]; a blank means or, a comma and. Repeatable.",
    ),
]
ExcludeOption = Annotated[
    list[str],
    typer.Option("--exclude", metavar="EXPR", help="Not these tasks; the same language."),
]
StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="DIR|s3://BUCKET/PREFIX",
        envvar="PROCTOR_STORE",
        help="Where evidence and results lie.",
    ),
]
WarehouseOption = Annotated[
    str,
    typer.Option(
        "--warehouse",
        metavar="URL",
        envvar="PROCTOR_WAREHOUSE",
        help="duckdb:///file.duckdb, a path to a .duckdb file, or postgresql://user@host/base.",
    ),
]
