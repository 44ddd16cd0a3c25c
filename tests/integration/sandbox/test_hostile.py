"""Agents that fork, flood, hide, fill and destroy: they end in time and leave nothing running."""

from __future__ import annotations

import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from proctor_operator.sandbox import Sandbox, Stop
from tests.integration.sandbox.agents import Bell, Unit, await_true, processes_with

# Starts daemons in every way that loses them: another group, another session, no parent, no
# variable, another folder. Each holds the output open.
DAEMONS = """
sleep {mark} &
setsid sleep {mark} &
(setsid sh -c 'sleep {mark} & sleep {mark}' &)
(cd / && env -i setsid /bin/sh -c '(setsid sleep {mark} &) ; sleep {mark}' &)
nohup sh -c 'trap "" TERM HUP; sleep {mark}' &
"""
DAEMON_COUNT = 7

FORKER = textwrap.dedent("""
    import os, sys, time
    for number in range(300):
        if os.fork() == 0:
            if number % 3: os.setsid()
            if number % 2 and os.fork(): os._exit(0)
            os.execvp("sleep", ["sleep", sys.argv[1]])
    open("bell", "w").write("!")
    while True: time.sleep(1000)
""")


def await_daemons(mark: str) -> None:
    await_true(lambda: len(processes_with(mark)) >= DAEMON_COUNT)


def test_daemons_neither_outlive_nor_delay_an_agent_that_ends(
    unit: Unit, bell: Bell, mark: str, pool: ThreadPoolExecutor
) -> None:
    running = pool.submit(unit.shell, DAEMONS.format(mark=mark) + "read line < bell; exit 4")
    await_daemons(mark)

    bell.ring()

    end = running.result()
    assert end.exit_code == 4
    assert end.seconds < 10
    assert processes_with(mark) == []


def test_a_time_out_ends_everything_that_the_agent_started(unit: Unit, mark: str) -> None:
    end = unit.shell(
        DAEMONS.format(mark=mark) + "trap '' TERM; while :; do sleep 0.01; done",
        timeout_seconds=1,
        grace_seconds=0.2,
    )

    assert end.timed_out
    assert (end.exit_code, end.signal) == (None, 9)
    assert end.seconds < 10
    assert processes_with(mark) == []


def test_an_agent_may_clean_up_after_term(unit: Unit) -> None:
    end = unit.shell(
        "trap 'echo saved > answer; exit 0' TERM; while :; do sleep 0.01; done", timeout_seconds=0.3
    )

    assert end.timed_out
    assert end.exit_code == 0
    assert (unit.work / "answer").read_text() == "saved\n"


def test_term_goes_to_the_agent_alone(unit: Unit) -> None:
    end = unit.shell(
        "trap 'wait; exit 9' TERM; (sleep 0.5; echo child lived) & wait", timeout_seconds=0.2
    )

    assert end.exit_code == 9
    assert unit.said() == "child lived\n"


def test_hundreds_of_forks_are_all_found(
    unit: Unit, bell: Bell, mark: str, pool: ThreadPoolExecutor
) -> None:
    stop = Stop()
    running = pool.submit(unit.python, FORKER, mark, stop=stop, timeout_seconds=60)
    bell.wait()
    await_true(lambda: len(processes_with(mark)) >= 300)

    stop.kill()

    assert running.result().cancelled
    assert processes_with(mark) == []


def test_agents_of_other_units_live_on(
    sandbox: Sandbox, tmp_path: Path, mark: str, pool: ThreadPoolExecutor
) -> None:
    one, other = Unit.make(sandbox, tmp_path / "one"), Unit.make(sandbox, tmp_path / "other")
    bell = Bell(other.work)
    running = pool.submit(other.shell, f"setsid sleep {mark} & read line < bell; exit 5")
    await_true(lambda: processes_with(mark) != [])

    one.shell(f"setsid sleep {mark}1 & exit 0")

    assert processes_with(f"{mark}1") == []
    assert len(processes_with(mark)) >= 1
    bell.ring()
    assert running.result().exit_code == 5
    bell.close()
    assert processes_with(mark) == []


def test_two_gigabytes_of_output_are_cut_and_never_stop_the_agent(unit: Unit) -> None:
    end = unit.shell("head -c 2147483648 /dev/zero; echo done >&2; exit 6", timeout_seconds=120)

    assert end.exit_code == 6
    assert end.output_truncated
    assert unit.stdout.stat().st_size == 1024 * 1024
    assert unit.stderr.read_text() == "done\n"


def test_an_agent_that_floods_for_ever_is_ended_in_time(unit: Unit) -> None:
    end = unit.shell("trap '' TERM; cat /dev/zero", timeout_seconds=0.5, grace_seconds=0.2)

    assert end.timed_out
    assert end.output_truncated
    assert end.seconds < 10


def test_output_up_to_the_limit_is_not_called_cut(unit: Unit) -> None:
    end = unit.shell("head -c 1048576 /dev/zero")

    assert not end.output_truncated
    assert unit.stdout.stat().st_size == 1024 * 1024


def test_its_own_folders_removed_under_it_change_nothing(unit: Unit) -> None:
    end = unit.shell('rm -rf "$PWD" ../output; echo still here; exit 2')

    assert end.exit_code == 2
    assert unit.said() == "still here\n"


def test_a_working_directory_that_is_gone_is_told(unit: Unit) -> None:
    unit.work.rmdir()

    assert "can't be started" in unit.run("true").start_error


def test_too_much_on_disk_ends_it(unit: Unit) -> None:
    unit.view = replace(unit.view, max_disk_bytes=4 * 1024 * 1024)

    end = unit.shell(
        "head -c 8388608 /dev/zero > ../output/big; while :; do sleep 0.01; done", grace_seconds=0
    )

    assert end.out_of_disk
    assert not end.timed_out
    assert end.seconds < 10


def test_what_an_agent_writes_elsewhere_is_not_counted(unit: Unit, tmp_path: Path) -> None:
    branch = tmp_path / "branch"
    branch.mkdir()
    unit.view = replace(unit.view, branch=branch, max_disk_bytes=4 * 1024 * 1024)

    end = unit.shell(f"head -c 8388608 /dev/zero > {branch}/big; ln -s / root; sleep 1.2")

    assert end.is_normal
    assert (branch / "big").stat().st_size == 8388608


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            "i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done", id="too-deep"
        ),
        pytest.param("ln -s /etc a; ln -s . b; mkfifo c; mkdir -m 000 d", id="links-and-closed"),
    ],
)
def test_odd_trees_are_measured_without_harm(unit: Unit, script: str) -> None:
    end = unit.shell(f"{script}; sleep 1.2", grace_seconds=0)

    assert end.out_of_disk == script.startswith("i=")


def test_a_closed_sandbox_starts_nothing(unit: Unit) -> None:
    unit.sandbox.close()

    assert unit.shell("touch started").cancelled
    assert not (unit.work / "started").exists()


def test_closing_ends_what_still_runs(
    unit: Unit, bell: Bell, mark: str, pool: ThreadPoolExecutor
) -> None:
    running = pool.submit(unit.shell, f"setsid sleep {mark} & echo > bell; sleep {mark}")
    bell.wait()

    unit.sandbox.close()

    assert running.result().signal == 9
    assert processes_with(mark) == []
