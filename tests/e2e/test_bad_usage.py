"""Wrong uses of every verb: one clear line with place and remedy, the documented exit code.

Nothing of a refused command is left: no file in the store or beside it, no branch, no run.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from proctor_operator.cli.app import main
from tests.e2e.inside import Inside
from tests.e2e.make_set import read_task, write_set, write_task, write_warehouse

PASSWORD = "a-secret-password-1"
AWAY = f"postgresql://someone:{PASSWORD}@127.0.0.1:1/base"
RUN = ("run", "asked", "--agent", "none", "--warehouse", "base.duckdb")
OTHER_SET = "give the folder of an eval set, or its eval.json"
OTHER_WAREHOUSE = "write it as duckdb:///relative.duckdb, duckdb:////absolute.duckdb"
OTHER_RUN = "give an id, the path of the run's folder, or 'last'"
OTHER_AGENT = "use command:LINE, replay:FILE, oracle or none"
OTHER_STORE = "expected a folder's path, file:///folder or s3://bucket/prefix"


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Inside:
    """A folder with sets, warehouses, replay files, and stores in several states."""
    home = tmp_path_factory.mktemp("bad")
    write_set(home / "asked", read_task("orders"), read_task("revenue"), write_task("build"))
    write_set(home / "reading", read_task("orders"))
    write_set(home / "broken", {"id": "a", "checks": [{"value": "x"}]})
    write_set(home / "elsewhere", read_task("orders"), project_repo="no-such-folder")
    (home / "nothing").mkdir()
    (home / "full").mkdir()
    (home / "full" / "file").write_text("kept")
    base = write_warehouse(home / "base.duckdb").read_bytes()
    (home / "text.duckdb").write_text("this is no database file")
    (home / "empty.duckdb").touch()
    (home / "cut.duckdb").write_bytes(base[:5000])
    (home / "folder.duckdb").mkdir()
    (home / "some.yaml").write_text("orders: {answer: '42'}")
    (home / "wrong.yaml").write_text("orders: {answer: [], slep: 1, exit: 300}")
    (home / "no.yaml").write_text("orders: [")
    (home / "answer.txt").write_text("42")
    call = Inside(home)
    for name in ("finished", "unfinished", "damaged", "passed"):
        agent = "oracle" if name == "passed" else "none"
        options = ("--agent", agent, "--sandbox", "none", "--store", name)
        assert call("run", "reading", *options).code in (0, 1)
    options = ("--exclude", "build", "--sandbox", "none", "--store", "asked-before")
    assert call("run", "asked", "--agent", "none", *options).code == 1
    for run in (home / "unfinished").glob("runs/local/*"):
        (run / "run.json").unlink()
    for run in (home / "damaged").glob("runs/local/*"):
        (run / "run.json").write_text('{"id": ')
        (run / "plan.json").write_text("{}")
    return call


def case(name: str, *arguments: str, told: tuple[str, ...], code: int = 2) -> pytest.ParameterSet:
    return pytest.param(arguments, told, code, id=name)


SETS = [
    case("check without a set", "check", told=("Missing argument 'DIR'", "proctor check -h")),
    case("check of what is not there", "check", "gone", told=("gone", OTHER_SET)),
    case(
        "check of a folder without a set", "check", "nothing", told=("no eval set found",), code=1
    ),
    case("check of a broken set", "check", "broken", told=("tasks[0].checks[0].value",), code=1),
    case(
        "check in an unknown format",
        *("check", "asked", "--format", "xml"),
        told=("unknown format 'xml'", "auto, eval-json, tasks, evals"),
    ),
    case("check with unknown output", "check", "asked", "-o", "xml", told=("'text', 'json'",)),
    case("ls of what is not there", "ls", "gone", told=("gone", OTHER_SET)),
    case("ls of a broken set", "ls", "broken", told=("2 errors", "prompts/a.txt"), code=1),
    case(
        "ls with wrong selections, all told",
        *("ls", "asked", "--select", "order", "--exclude", "tags:x"),
        told=("select 'order'", "did you mean 'orders'?", "unknown selection method 'tags'"),
    ),
    case(
        "ls by outcome without a run",
        *("ls", "asked", "--select", "outcome:failed"),
        told=("no such run", "no finished run yet"),
    ),
    case("init without a folder", "init", told=("Missing argument 'DIR'",)),
    case("init in a folder with files", "init", "full", told=("full", "is not empty")),
    case("init where no folder can be", "init", "answer.txt/x", told=("answer.txt/x", "may write")),
    case("init in an unknown format", "init", "new", "--format", "xml", told=("use eval-json",)),
]
RUNS = [
    case("run without a set", "run", "--agent", "none", told=("DIR: is missing", "name the eval")),
    case("run of what is not there", "run", "gone", "--agent", "none", told=("gone", OTHER_SET)),
    case("run of a broken set", "run", "broken", "--agent", "none", told=("2 errors",), code=1),
    case("run without an agent", "run", "reading", told=("--agent: is missing", OTHER_AGENT)),
    case("run with an unknown agent", "run", "reading", "--agent", "gpt", told=(OTHER_AGENT,)),
    case(
        "run with a misspelt agent",
        *("run", "reading", "--agent", "oracel"),
        told=("did you mean 'oracle'?", OTHER_AGENT),
    ),
    case(
        "run with an agent that lacks its argument",
        *("run", "reading", "--agent", "replay"),
        told=("--agent", "use replay:FILE"),
    ),
    case(
        "run with an argument too many",
        *("run", "reading", "--agent", "oracle:x"),
        told=("'oracle' takes no argument",),
    ),
    case(
        "run with an open quote",
        *("run", "reading", "--agent", "command:sh 'x"),
        told=("can't be split into words", "close the quotes"),
    ),
    case(
        "run with a command that is not there",
        *("run", "reading", "--agent", "command:no-such-program --print"),
        told=("--agent: command not found: no-such-program", "--agent-path"),
    ),
    case(
        "run of write tasks without a warehouse",
        *("run", "asked", "--agent", "none"),
        told=("--warehouse: task 'build'", "--exclude class:write"),
    ),
    case(
        "run with a selection that leaves nothing",
        *(*RUN, "--exclude", "class:read class:write"),
        told=("nothing left to run",),
    ),
    case(
        "run with an empty part in a selection",
        *(*RUN, "--select", "orders,,revenue"),
        told=("select 'orders,,revenue'", "empty"),
    ),
    case("run with an unknown gate", *RUN, "--gate", "max=1", told=("unknown gate 'max'", "minA")),
    case("run with a gate without value", *RUN, "--gate", "maxErrors", told=("maxErrors=VALUE",)),
    case("run with a gate out of range", *RUN, "--gate", "minAccuracy=101", told=("0 to 100",)),
    case(
        "run with a gate twice",
        *(*RUN, "--gate", "maxErrors=1", "--gate", "maxErrors=2"),
        told=("given twice",),
    ),
    case("run with no trials", *RUN, "--trials", "0", told=("--trials", "1")),
    case("run with too many units at once", *RUN, "--parallel", "65", told=("--parallel", "64")),
    case("run with no time", *RUN, "--agent-timeout", "0", told=("--agent-timeout", "1")),
    case("run in an unknown sandbox", *RUN, "--sandbox", "vm", told=("'auto', 'bwrap', 'none'",)),
    case(
        "run without network and without sandbox",
        *(*RUN, "--sandbox", "none", "--network", "none"),
        told=("--network none", "--sandbox bwrap"),
    ),
    case(
        "run with a variable that is not set",
        *(*RUN, "--agent-env", "NO_SUCH_VARIABLE"),
        told=("--agent-env", "export NO_SUCH_VARIABLE"),
    ),
    case("run with a folder that is not there", *RUN, "--agent-path", "no", told=("--agent-path",)),
    case("run with an unknown option", *RUN, "--modell", "x", told=("No such option", "--modell")),
    case("run with two sets", *RUN, "reading", told=("unexpected extra argument",)),
]
REPLAYS = [
    case(
        f"replay with {what}",
        *("run", "reading", "--select", "orders", "--agent", f"replay:{file}"),
        told=told,
    )
    for what, file, told in (
        ("a file that is not there", "gone.yaml", ("gone.yaml", "no such file")),
        ("a folder", "full", ("can't be read", "is a directory")),
        ("a file that is no YAML", "no.yaml", ("no.yaml:", "is no valid YAML")),
        (
            "wrong entries, all told",
            "wrong.yaml",
            ("orders.answer", "did you mean 'sleep'?", "orders.exit", "an entry may have"),
        ),
    )
] + [
    case(
        "replay with missing entries",
        *("run", "asked", "--exclude", "build", "--agent", "replay:some.yaml"),
        told=("some.yaml", "no entry for 'revenue'", "--exclude"),
    ),
]
WAREHOUSES = [
    case(f"{verb[0]} with {what}", *verb, url, told=told, code=code)
    for verb in (
        ("run", "asked", "--agent", "none", "--warehouse"),
        ("fingerprint",),
        ("score", "asked", "build", "--warehouse"),
    )
    for what, url, told, code in (
        ("a missing file", "gone.duckdb", ("gone.duckdb", "check the path"), 2),
        ("a text file", "text.duckdb", ("is no DuckDB database", "name a file"), 2),
        ("an empty file", "empty.duckdb", ("is empty", "name a file"), 2),
        ("a file cut short", "cut.duckdb", ("cut.duckdb", "can't be opened"), 2),
        ("a folder", "folder.duckdb", ("is not a file",), 2),
        ("another engine", "mysql://host/base", ("'mysql'", OTHER_WAREHOUSE), 2),
        ("two slashes", "duckdb://base.duckdb", ("names no file", OTHER_WAREHOUSE), 2),
        ("no suffix", "base", ("is no warehouse's URL", OTHER_WAREHOUSE), 2),
        ("a server without a database", "postgresql://host", ("names no database",), 2),
        ("a server that is away", AWAY, ("someone@127.0.0.1:1/base", "check host and port"), 3),
    )
]
STORES = [
    case("run with no place for the store", *RUN, "--store", "", told=(OTHER_STORE,)),
    case("run with another kind of store", *RUN, "--store", "ftp://x/y", told=(OTHER_STORE,)),
    case("run with a file as store", *RUN, "--store", "answer.txt", told=("choose another place",)),
    case("run below a file", *RUN, "--store", "answer.txt/x", told=("choose another place",)),
    case("run with a store that can't be", *RUN, "--store", "/proc/x", told=("/proc/x",), code=3),
    case(
        "run with credentials in the store's URL",
        *(*RUN, "--store", f"s3://key:{PASSWORD}@bucket/x"),
        told=("must not hold credentials", "AWS_ACCESS_KEY_ID"),
    ),
    case("show in an empty store", "show", told=("there is no run yet", "proctor run DIR")),
    case("show in a file", "show", "--store", "answer.txt", told=("choose another place",)),
    case(
        "sweep of a server that is away",
        "sweep",
        "--warehouse",
        AWAY,
        told=("not dropped",),
        code=3,
    ),
    case("sweep of no warehouse", "sweep", "--warehouse", "base", told=(OTHER_WAREHOUSE,)),
]
EARLIER_RUNS = (
    [
        case(f"{verb} of a run that is not there", *arguments, told=("no such run", OTHER_RUN))
        for verb, arguments in (
            ("show", ("show", "run-x", "--store", "finished")),
            ("report", ("report", "run-x", "--store", "finished")),
            ("grade", ("grade", "run-x", "--store", "finished")),
            ("diff", ("diff", "last", "run-x", "--store", "finished")),
            ("resume", ("run", "--resume", "run-x", "--store", "finished")),
            ("a path", ("show", "finished/runs/local/run-x")),
        )
    ]
    + [
        case(
            f"{verb} of a run that has not finished",
            *arguments,
            told=("proctor run --resume run-",),
        )
        for verb, arguments in (
            ("show", ("show", "--store", "unfinished")),
            ("report", ("report", "--store", "unfinished")),
            ("grade", ("grade", "last", "--store", "unfinished")),
            ("diff", ("diff", "last", "last", "--store", "unfinished")),
        )
    ]
    + [
        case(
            f"{verb} of a damaged run",
            *arguments,
            told=("run.json: is damaged", "restore it"),
            code=3,
        )
        for verb, arguments in (
            ("show", ("show", "--store", "damaged")),
            ("report", ("report", "--store", "damaged")),
            ("grade", ("grade", "last", "--store", "damaged")),
            ("diff", ("diff", "last", "last", "--store", "damaged")),
            ("resume", ("run", "--resume", "last", "--store", "damaged")),
        )
    ]
    + [
        case(
            "resume of a finished run",
            *("run", "--resume", "last", "--store", "finished"),
            told=("has finished (Complete)", "--failed"),
        ),
        case(
            "resume as a dry run",
            *("run", "--resume", "last", "--dry-run", "--store", "unfinished"),
            told=("--dry-run", "leave it out"),
        ),
        case(
            "failed without a run",
            *("run", "reading", "--agent", "none", "--failed"),
            told=("no finished run yet", "leave --failed out"),
        ),
        case(
            "failed when everything passed",
            *("run", "reading", "--agent", "none", "--failed", "--store", "passed"),
            told=("everything passed in run-", "nothing left to run"),
        ),
        case(
            "failed when all of it is excluded",
            *("run", "asked", "--agent", "none", "--failed", "--exclude", "class:read"),
            *("--store", "asked-before"),
            told=("is gone or excluded: nothing left to run",),
        ),
        case(
            "failed with a selection",
            *("run", "reading", "--agent", "none", "--failed", "--select", "orders"),
            told=("--select outcome:failed",),
        ),
        case("diff with one run", "diff", "last", told=("Missing argument 'RUN_B'",)),
        case(
            "show of an unknown task",
            *("show", "last", "order", "--store", "finished"),
            told=("has no task 'order'", "did you mean 'orders'?"),
        ),
        case(
            "report into a folder with files",
            *("report", "--store", "finished", "--out", "full"),
            told=("full", "--out"),
        ),
        case(
            "report below a file",
            *("report", "--store", "finished", "--out", "answer.txt/x"),
            told=("answer.txt/x", "--out"),
        ),
        case(
            "report where no folder can be",
            *("report", "--store", "finished", "--out", "/proc/x"),
            told=("/proc/x", "--out"),
        ),
        case(
            "grade with a set that is not there",
            *("grade", "last", "--store", "finished", "--set", "gone"),
            told=("gone", OTHER_SET),
        ),
        case(
            "grade with a broken set",
            *("grade", "last", "--store", "finished", "--set", "broken"),
            told=("2 errors",),
            code=1,
        ),
        case(
            "score of an unknown task",
            *("score", "asked", "order", "--answer", "answer.txt"),
            told=("has no task 'order'", "did you mean 'orders'?", "proctor ls"),
        ),
        case(
            "score of an answer that is not there",
            *("score", "asked", "orders", "--answer", "gone.txt"),
            told=("--answer", "gone.txt", "or - for standard input"),
        ),
        case("an unknown verb", "evaluate", told=("No such command 'evaluate'",)),
    ]
)


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [*SETS, *RUNS, *REPLAYS, *WAREHOUSES, *STORES, *EARLIER_RUNS],
)
def test_wrong_use_is_refused(
    call: Inside, arguments: tuple[str, ...], told: tuple[str, ...], code: int
) -> None:
    before = files(call.home)
    done = call(*arguments)
    text = on_one_line(done.stderr)
    assert done.code == code, done
    for words in told:
        assert words in text
    assert "Traceback" not in text
    assert PASSWORD not in done.stdout + done.stderr
    if arguments[0] != "sweep":
        assert done.stdout == ""
    assert files(call.home) == before


def files(home: Path) -> dict[str, bytes]:
    """Everything in a folder, but for the state's marks of an installation."""
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else b""
        for path in home.rglob("*")
        if path.relative_to(home).parts[0] != "state" or path.parent.name in ("runs", "branches")
    }


def on_one_line(text: str) -> str:
    """A message without the line breaks and frames that a terminal's width brings."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", text)


def test_project_that_is_not_there_ends_the_run_before_any_unit(call: Inside) -> None:
    done = call("run", "elsewhere", "--agent", "none", "--sandbox", "none", "--store", "projects")
    assert done.code == 3
    assert "project_repo: 'no-such-folder' is neither" in on_one_line(done.stderr)
    assert not list((call.home / "projects").glob("runs/local/*/units"))
    shutil.rmtree(call.home / "projects")


def test_missing_input_leaves_the_task_ungraded_and_names_the_option(call: Inside) -> None:
    for task, option in (("orders", "--answer"), ("build", "--warehouse")):
        done = call("score", "asked", task)
        assert (done.code, done.stderr) == (1, "")
        assert done.stdout.startswith("UNGRADED")
        assert option in done.stdout


def test_options_that_a_resumed_run_does_not_look_at_are_named(call: Inside) -> None:
    shutil.copytree(call.home / "unfinished", call.home / "resumed")
    options = ("--agent", "oracle", "--trials", "3", "--store", "resumed", "-o", "json")
    done = call("run", "reading", "--resume", "last", *options)
    assert "options it was started with: DIR, --agent, --trials not looked at" in done.stderr
    record = json.loads(done.stdout)["record"]
    assert record["agent"] == {"default": "none"}
    assert record["variants"]["default"]["total"] == 1
    shutil.rmtree(call.home / "resumed")


def test_run_whose_time_is_over_is_cancelled(call: Inside) -> None:
    agent = ("--agent", "command:sleep 60", "--sandbox", "none", "--run-timeout", "1")
    done = call("run", "reading", *agent, "--store", "late", "-o", "json")
    document = json.loads(done.stdout)
    assert (done.code, document["end"]) == (130, "Cancelled")
    assert document["reason"] == "RunDeadlineExceeded"
    assert document["record"]["variants"]["default"]["outcomes"]["cancelled"] == 1
    shutil.rmtree(call.home / "late")


def test_replay_file_is_kept_with_its_whole_path(call: Inside) -> None:
    options = ("--agent", "replay:some.yaml", "--dry-run")
    document = call.json("run", "reading", *options)
    assert document["agent"] == f"replay:{call.home}/some.yaml"


def test_fault_of_proctor_itself_is_no_failed_gate(call: Inside) -> None:
    """A stdout that was closed is the one fault at hand that no verb foresees."""
    closed = io.StringIO()
    closed.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["proctor", "check", str(call.home / "reading"), "-o", "json"])
        patch.setattr(sys, "stdout", closed)
        patch.setattr(sys, "stderr", told := io.StringIO())
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 3
    assert "this is a fault of Proctor itself: please report it" in told.getvalue()
