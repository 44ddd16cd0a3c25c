"""What both sandboxes promise of an ordinary process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path

import pytest

from proctor_operator.sandbox import Sandbox, Stop
from tests.integration.sandbox.agents import Bell, Unit, descriptors


@pytest.mark.parametrize(
    ("script", "exit_code", "signal"),
    [
        pytest.param("true", 0, None, id="a-normal-end"),
        pytest.param("exit 3", 3, None, id="a-code-of-its-own"),
        pytest.param("exit 255", 255, None, id="the-highest-code"),
        pytest.param("kill -KILL $$", None, 9, id="a-signal"),
        pytest.param("kill -SEGV $$", None, 11, id="a-crash"),
    ],
)
def test_the_end_tells_code_or_signal(
    unit: Unit, script: str, exit_code: int | None, signal: int | None
) -> None:
    end = unit.shell(script)

    assert (end.exit_code, end.signal) == (exit_code, signal)
    assert (end.timed_out, end.cancelled, end.out_of_disk) == (False, False, False)
    assert end.start_error == ""
    assert end.started_at.tzinfo is UTC
    assert end.started_at <= end.ended_at
    assert end.is_normal == (exit_code == 0)


def test_output_lands_in_two_files(unit: Unit) -> None:
    unit.shell("echo out; echo err >&2")

    assert unit.said() == "out\n"
    assert unit.stderr.read_text() == "err\n"


def test_output_shares_a_file_in_the_order_it_was_written(unit: Unit) -> None:
    unit.shell("echo 1; echo 2 >&2; echo 3", stderr=None)

    assert unit.said() == "1\n2\n3\n"


def test_output_is_kept_byte_for_byte(unit: Unit) -> None:
    unit.python("import os; os.write(1, bytes(range(256)))")

    assert unit.stdout.read_bytes() == bytes(range(256))


def test_a_program_that_reopens_its_output_truncates_nothing(unit: Unit) -> None:
    unit.shell("echo first; echo second > /dev/stdout; echo third")

    assert unit.said() == "first\nsecond\nthird\n"


def test_a_silent_process_leaves_no_files_even_of_an_earlier_run(unit: Unit) -> None:
    unit.shell("echo out; echo err >&2")
    unit.shell("true")

    assert not unit.stdout.exists()
    assert not unit.stderr.exists()


def test_input_is_empty(unit: Unit) -> None:
    assert unit.shell("cat").exit_code == 0


def test_the_environment_is_the_given_one_and_nothing_of_the_runner(
    unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNERS_SECRET", "x")
    unit.environment = {"PATH": os.defpath, "MINE": "a b\n$(c)", "TMPDIR": str(unit.view.tmp)}

    unit.python("import os; print(sorted(os.environ.items()))")

    names = {name for name, _ in eval(unit.said())}
    assert {"MINE", "PATH", "TMPDIR"} <= names <= {"MINE", "PATH", "TMPDIR", "PWD", "LC_CTYPE"}
    assert ("MINE", "a b\n$(c)") in eval(unit.said())


def test_temporary_files_go_to_the_units_own_folder(unit: Unit) -> None:
    unit.environment |= {"TMPDIR": str(unit.view.tmp)}

    unit.shell('echo x > "$TMPDIR/file"')

    assert (unit.view.tmp / "file").read_text() == "x\n"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param("no-such-agent", "command not found: no-such-agent", id="not-on-the-path"),
        pytest.param("./missing", "command not found: ./missing", id="not-in-the-folder"),
        pytest.param("./plain", "lacks the x permission", id="not-executable"),
        pytest.param("./folder", "command not found: ./folder", id="a-folder"),
        pytest.param("./orphan", "can't be started", id="its-interpreter-is-missing"),
    ],
)
def test_what_cant_be_started_is_told(unit: Unit, program: str, said: str) -> None:
    (unit.work / "plain").write_text("echo\n")
    (unit.work / "plain").chmod(0o644)
    (unit.work / "folder").mkdir()
    (unit.work / "orphan").write_text("#!/no/such/interpreter\n")
    (unit.work / "orphan").chmod(0o755)

    end = unit.run(program)

    assert said in end.start_error
    assert (end.exit_code, end.signal) == (None, None)


def test_an_agent_can_not_pretend_that_it_never_started(unit: Unit) -> None:
    end = unit.shell("echo 'bwrap: execvp agent: No such file or directory' >&2; exit 1")

    assert end.start_error == ""
    assert end.exit_code == 1


def test_the_programs_of_its_own_path_are_found(unit: Unit) -> None:
    tool = unit.work / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(0o755)
    unit.environment = {"PATH": f"{tool.parent}:{os.defpath}"}

    unit.run("tool")

    assert unit.said() == "mine\n"


def test_many_at_once_do_not_mix(
    sandbox: Sandbox, tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    units = [Unit.make(sandbox, tmp_path / str(number)) for number in range(12)]

    ends = list(
        pool.map(
            lambda unit: unit.shell(f"echo {unit.folder.name}; exit {unit.folder.name}"), units
        )
    )

    assert [end.exit_code for end in ends] == list(range(12))
    assert [unit.said() for unit in units] == [f"{number}\n" for number in range(12)]


def test_a_run_leaves_no_descriptor_and_no_child(unit: Unit) -> None:
    unit.shell("true")
    before = descriptors(), children()

    for _ in range(10):
        unit.shell("echo x; sleep 1000 & setsid sleep 1000 &")
        unit.run("no-such-agent")

    assert (descriptors(), children()) == before


def test_a_stop_from_another_thread_ends_it(
    unit: Unit, bell: Bell, pool: ThreadPoolExecutor
) -> None:
    stop = Stop()
    running = pool.submit(
        unit.shell, "trap 'exit 7' TERM; echo > bell; while :; do sleep 0.01; done", stop=stop
    )
    bell.wait()

    stop.cancel()

    end = running.result()
    assert end.cancelled
    assert end.exit_code == 7


def test_a_kill_waits_for_no_grace(unit: Unit, bell: Bell, pool: ThreadPoolExecutor) -> None:
    stop = Stop()
    running = pool.submit(
        unit.shell, "trap '' TERM; echo > bell; while :; do sleep 0.01; done", stop=stop
    )
    bell.wait()

    stop.cancel()
    stop.kill()

    end = running.result()
    assert end.cancelled
    assert (end.exit_code, end.signal) == (None, 9)
    assert end.seconds < 10


def test_what_is_stopped_before_it_began_never_starts(unit: Unit) -> None:
    stop = Stop()
    stop.cancel()

    end = unit.shell("touch started", stop=stop)

    assert end.cancelled
    assert (end.exit_code, end.signal, end.start_error) == (None, None, "")
    assert not (unit.work / "started").exists()


def test_a_stop_after_the_end_is_harmless(unit: Unit) -> None:
    stop = Stop()
    unit.shell("true", stop=stop)

    stop.cancel()
    stop.kill()


def children() -> set[str]:
    return {
        child
        for thread in os.listdir("/proc/self/task")
        for child in Path(f"/proc/self/task/{thread}/children").read_text().split()
    }
