"""How a set's scripts are run."""

from __future__ import annotations

import pytest

from proctor_grader.model.unit import Stage
from proctor_grader.pod.script import ScriptInput, script_command, script_environment


def given(path: str = "setup.sh", task: str = "t1", **env_file: str) -> ScriptInput:
    return ScriptInput(path, task, Stage.SETUP, "postgresql://branch", env_file)


@pytest.mark.parametrize(
    ("path", "task", "argv"),
    [
        pytest.param("a/setup.py", "t1", ("python3", "./a/setup.py", "t1"), id="python"),
        pytest.param("setup.sh", "t1", ("sh", "./setup.sh", "t1"), id="shell"),
        pytest.param("setup", "t1", ("sh", "./setup", "t1"), id="no-suffix"),
        pytest.param("setup.PY", "t1", ("sh", "./setup.PY", "t1"), id="another-suffix"),
        pytest.param("my setup.sh", "-x; $(id)", ("sh", "./my setup.sh", "-x; $(id)"), id="odd"),
    ],
)
def test_a_script_is_an_argument_list(path: str, task: str, argv: tuple[str, ...]) -> None:
    assert script_command(given(path, task)) == argv


def test_six_names_are_the_runs_own() -> None:
    environment = script_environment({"PATH": "/bin"}, given())

    assert environment == {
        "PATH": "/bin",
        "SP_EVAL_TASK": "t1",
        "PROCTOR_TASK": "t1",
        "SP_EVAL_PHASE": "setup",
        "PROCTOR_PHASE": "setup",
        "SP_WAREHOUSE_DSN": "postgresql://branch",
        "PROCTOR_WAREHOUSE_DSN": "postgresql://branch",
    }


def test_an_env_file_overrules_everything_but_them() -> None:
    names = script_environment({}, given())
    overruling = dict.fromkeys((*names, "HOME", "MINE"), "x")

    environment = script_environment(
        {"HOME": "/h"}, ScriptInput("a", "t1", Stage.SETUP, "postgresql://branch", overruling)
    )

    assert environment == names | {"HOME": "x", "MINE": "x"}
