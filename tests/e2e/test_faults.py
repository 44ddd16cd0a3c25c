"""What must hold when agents, stores and the runner itself fail: one clear line, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli import Proctor
from tests.e2e.make_set import read_task, write_agent, write_set, write_task, write_warehouse
from tests.services.s3 import S3Process

pytestmark = pytest.mark.slow

ANSWER = 'echo 42 > "$PROCTOR_OUTPUT/answer.txt"'
SANDBOXES = ["bwrap", "none"]


@pytest.fixture
def proctor(tmp_path: Path, bubblewrap_path: Path) -> Proctor:
    return Proctor(tmp_path)


def run_agent(proctor: Proctor, script: str, *options: str, sandbox: str = "bwrap") -> dict:  # type: ignore[type-arg]
    """Run a set of one question with an agent; returns its result document."""
    eval_set = write_set(proctor.home / "asked", read_task("t"))
    agent = write_agent(proctor.home / "agents" / "agent.sh", script)
    done = proctor.run(
        *("run", str(eval_set), "--agent", agent, "--sandbox", sandbox, "-o", "json"),
        *("--agent-path", str(proctor.home / "agents"), *options),
    )
    assert "Traceback" not in done.stderr
    return proctor.results(done.document["run"])["t"]


def processes_with(marker: str) -> list[int]:
    """Processes whose command line holds a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_everything_a_timed_out_agent_started_is_ended(proctor: Proctor, sandbox: str) -> None:
    marker = f"97{os.getpid()}.25"
    script = f"trap '' TERM\nsetsid sleep {marker} &\n(sleep {marker} &)\nwhile :; do sleep 1; done"
    result = run_agent(proctor, script, "--agent-timeout", "1", sandbox=sandbox)
    assert (result["verdict"], result["cause"], result["reason"]) == (
        "ERROR",
        "agent",
        "AgentTimeout",
    )
    assert processes_with(marker) == []


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_agent_that_leaves_daemons_behind_is_judged_and_they_are_ended(
    proctor: Proctor, sandbox: str
) -> None:
    marker = f"98{os.getpid()}.25"
    result = run_agent(proctor, f"setsid sleep {marker} &\n{ANSWER}", sandbox=sandbox)
    assert result["verdict"] == "CORRECT"
    assert processes_with(marker) == []


@pytest.mark.parametrize(
    ("script", "verdict", "reason"),
    [
        pytest.param(
            "head -c 300000000 /dev/urandom; " + ANSWER, "CORRECT", "", id="prints-much-binary"
        ),
        pytest.param(
            'head -c 2000000000 /dev/zero > "$PROCTOR_WORKDIR/big"; sleep 60',
            "ERROR",
            "AgentDiskExceeded",
            id="fills-the-disk",
        ),
        pytest.param(
            'cd /; rm -rf "$PROCTOR_WORKDIR" "$PROCTOR_OUTPUT" "$HOME"; true',
            "UNKNOWN",
            "",
            id="deletes-its-folders",
        ),
        pytest.param("exit 3", "ERROR", "AgentCrashed", id="fails-without-an-answer"),
        pytest.param(ANSWER + "; exit 3", "CORRECT", "AgentCrashed", id="fails-with-an-answer"),
        pytest.param(
            'printf "\\377\\376 42" > "$PROCTOR_OUTPUT/answer.txt"',
            "CORRECT",
            "",
            id="answers-in-no-encoding",
        ),
        pytest.param(
            'mkfifo "$PROCTOR_OUTPUT/answer.txt"', "UNKNOWN", "", id="leaves-a-pipe-as-answer"
        ),
        pytest.param(
            'ln -s /etc/hostname "$PROCTOR_OUTPUT/answer.txt"',
            "UNKNOWN",
            "",
            id="leaves-a-link-as-answer",
        ),
        pytest.param("kill -9 $$", "ERROR", "AgentCrashed", id="kills-itself"),
    ],
)
def test_hostile_agent_gets_the_right_verdict(
    proctor: Proctor, script: str, verdict: str, reason: str
) -> None:
    result = run_agent(proctor, script, "--agent-timeout", "30")
    assert (result["verdict"], result["reason"]) == (verdict, reason)


def test_nothing_of_the_host_comes_into_the_store_through_links(proctor: Proctor) -> None:
    secret = proctor.home / "secret.txt"
    secret.write_text("the host's own secret 4711", "utf-8")
    script = (
        "for name in answer.txt transcript.jsonl events.jsonl; do "
        f'ln -s {secret} "$PROCTOR_OUTPUT/$name"; done\n'
        f'ln -s {secret} "$PROCTOR_WORKDIR/link"; ln {secret} "$PROCTOR_WORKDIR/hard" 2>/dev/null\n'
        f'echo mine > "$PROCTOR_WORKDIR/own"'
    )
    run_agent(proctor, script, sandbox="none")
    held = b"".join(path.read_bytes() for path in proctor.store.rglob("*") if path.is_file())
    assert b"4711" not in held


def test_sandboxed_agent_finds_no_answer_key(proctor: Proctor) -> None:
    script = (
        f"cat {proctor.home}/asked/eval.json {proctor.state}/*/* {proctor.store}/*/*/*/* "
        '> "$PROCTOR_OUTPUT/answer.txt" 2>/dev/null; grep -rl 42 / --include=eval.json 2>/dev/null '
        '>> "$PROCTOR_OUTPUT/answer.txt"; true'
    )
    result = run_agent(proctor, script)
    assert result["answer"] == ""
    assert result["verdict"] == "UNKNOWN"


def test_command_that_does_not_exist_is_refused_with_a_remedy(proctor: Proctor) -> None:
    eval_set = write_set(proctor.home / "asked", read_task("t"))
    done = proctor.run("run", str(eval_set), "--agent", "command:no-such-agent")
    assert done.code == 2
    assert "no-such-agent" in done.stderr
    assert not (proctor.store / "runs").exists()


# -- the runner itself -----------------------------------------------------------------------


def slow_run(proctor: Proctor, gate: Path, *options: str) -> subprocess.Popen[str]:
    """Start a run of six units whose agents wait until the gate file is there."""
    tasks = [read_task(f"r{index}") for index in range(3)]
    tasks += [write_task(f"w{index}") for index in range(3)]
    eval_set = write_set(proctor.home / "asked", *tasks)
    warehouse = write_warehouse(proctor.home / "base" / "small.duckdb")
    agent = write_agent(
        proctor.home / "agents" / "agent.sh",
        f"touch {gate.parent}/$PROCTOR_TASK.began\n"
        f"while [ ! -e {gate} ]; do sleep 0.05; done\n{ANSWER}",
    )
    gate.parent.mkdir(exist_ok=True)
    return proctor.start(
        *("run", str(eval_set), "--agent", agent, "--warehouse", str(warehouse)),
        *("--agent-path", str(proctor.home / "agents"), "--agent-path", str(gate.parent)),
        *("--sandbox", "none", "--parallel", "2", "-o", "json", *options),
    )


def wait_for_agents(gate: Path, count: int) -> None:
    """Return when so many agents have begun."""
    watch = subprocess.run(
        [
            *("timeout", "60", "sh", "-c"),
            f"until [ $(ls {gate.parent} | grep -c began) -ge {count} ]; do sleep 0.05; done",
        ],
        check=False,
    )
    assert watch.returncode == 0, "the agents did not begin"


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "gate" / "open"
    yield path
    for pid in processes_with(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)


def test_killed_run_is_swept_and_resumed_without_losing_or_repeating_a_unit(
    proctor: Proctor, gate: Path
) -> None:
    process = slow_run(proctor, gate)
    wait_for_agents(gate, 2)
    process.kill()
    process.communicate()
    (run_id,) = [path.name for path in (proctor.store / "runs" / "local").iterdir()]
    assert proctor.branches() != []

    swept = proctor.run("sweep", "-o", "json")
    assert (swept.code, swept.document["problems"]) == (0, [])
    assert proctor.branches() == []
    assert proctor.runs_held() == []

    gate.touch()
    resumed = proctor.run("run", "--resume", "last", "-o", "json")
    assert resumed.document["run"] == run_id
    assert resumed.document["end"] == "Complete", resumed.stderr
    results = proctor.results(run_id)
    assert {task: result["verdict"] for task, result in results.items()} == {
        **{f"r{index}": "CORRECT" for index in range(3)},
        **{f"w{index}": "OFF" for index in range(3)},
    }
    assert proctor.branches() == []
    again = proctor.run("run", "--resume", run_id)
    assert again.code == 2
    assert "has finished" in again.stderr


def test_next_run_drops_what_a_killed_one_left(proctor: Proctor, gate: Path) -> None:
    process = slow_run(proctor, gate)
    wait_for_agents(gate, 2)
    process.kill()
    process.communicate()
    gate.touch()
    done = slow_run(proctor, gate)
    _, stderr = done.communicate(timeout=60)
    assert "dropped" in stderr
    assert proctor.branches() == []
    assert proctor.runs_held() == []


def test_living_run_is_left_alone_by_a_sweep_and_can_not_be_resumed(
    proctor: Proctor, gate: Path
) -> None:
    process = slow_run(proctor, gate)
    wait_for_agents(gate, 2)
    before = proctor.branches()
    assert proctor.run("sweep", "-o", "json").document["dropped"] == []
    assert proctor.branches() == before
    refused = proctor.run("run", "--resume", "last")
    assert refused.code == 3
    assert "is running right now" in refused.stderr
    gate.touch()
    stdout, _ = process.communicate(timeout=60)
    assert json.loads(stdout)["end"] == "Complete"


def test_one_interrupt_cancels_cleans_up_and_reports_what_ran(proctor: Proctor, gate: Path) -> None:
    process = slow_run(proctor, gate)
    wait_for_agents(gate, 2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    document = json.loads(stdout)
    assert (process.returncode, document["end"]) == (130, "Cancelled"), stderr
    results = proctor.results(document["run"])
    assert {result["verdict"] for result in results.values()} == {"CANCELLED"}
    assert len(results) == 6
    assert proctor.branches() == []
    assert proctor.runs_held() == []


def test_second_interrupt_stops_at_once_and_a_sweep_drops_the_rest(
    proctor: Proctor, gate: Path
) -> None:
    tasks = [write_task("w", setup="wait.sh")]
    eval_set = write_set(proctor.home / "asked", *tasks)
    gate.parent.mkdir()
    (eval_set / "wait.sh").write_text(
        f"trap '' TERM; touch {gate.parent}/w.began; while :; do sleep 1; done"
    )
    warehouse = write_warehouse(proctor.home / "base" / "small.duckdb")
    process = proctor.start(
        *("run", str(eval_set), "--agent", "none", "--warehouse", str(warehouse)),
        *("--sandbox", "none"),
    )
    wait_for_agents(gate, 1)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    for line in process.stderr:
        if "cancelling" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert proctor.run("sweep").code == 0
    assert proctor.branches() == []
    assert processes_with(str(proctor.home)) == []


# -- stores ----------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.fail("run as root: the test mounts a small file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_halts_the_run_and_resuming_finishes_it(
    proctor: Proctor, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    tasks = [read_task(f"r{index}") for index in range(4)]
    eval_set = write_set(proctor.home / "asked", *tasks)
    agent = write_agent(
        proctor.home / "agents" / "agent.sh",
        "head -c 400000 /dev/urandom\n"
        f"[ $PROCTOR_TASK = r1 ] && head -c 9000000 /dev/zero > {ballast}\n{ANSWER}",
    )
    full = Proctor(proctor.home, {"PROCTOR_STORE": str(small_disk / "store")})
    done = full.run(
        *("run", str(eval_set), "--agent", agent, "--sandbox", "none", "--parallel", "1"),
        *("-o", "json"),
    )
    document = done.document
    assert (done.code, document["reason"]) == (3, "StoreFull"), done.stderr
    assert "--resume" in document["resume"]
    assert "Traceback" not in done.stderr
    ballast.unlink()
    agent_file = proctor.home / "agents" / "agent.sh"
    agent_file.write_text(f"#!/bin/sh\n{ANSWER}\n")
    resumed = full.run("run", "--resume", document["run"], "-o", "json")
    assert resumed.document["end"] == "Complete", resumed.stderr
    assert resumed.document["record"]["variants"]["default"]["outcomes"]["passed"] == 4


@pytest.mark.parametrize(
    ("patience", "end"),
    [
        pytest.param("60", "Complete", id="ridden-out"),
        pytest.param("1", "Failed", id="halts-the-run"),
    ],
)
def test_store_that_goes_away(
    proctor: Proctor, gate: Path, private_s3: object, patience: str, end: str
) -> None:
    server: S3Process = private_s3()  # type: ignore[operator]
    bucket = server.server.make_bucket()
    s3 = Proctor(
        proctor.home, {**server.server.environment, "PROCTOR_STORE": f"{bucket.url}/evals"}
    )
    process = slow_run(s3, gate, "--store-retry", patience)
    wait_for_agents(gate, 2)
    server.stop()
    gate.touch()
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if "waiting for the store" in line:
            break
    if end == "Complete":
        server.start()
    stdout, stderr = process.communicate(timeout=100)
    document = json.loads(stdout)
    assert document["end"] == end, told + stderr
    assert s3.branches() == []
    if end == "Failed":
        assert (process.returncode, document["reason"]) == (3, "StoreUnavailable")
        server.start()
        document = s3.run("run", "--resume", document["run"], "-o", "json").document
        assert document["end"] == "Complete"
    outcomes = document["record"]["variants"]["default"]["outcomes"]
    assert outcomes == {"passed": 3, "failed": 3, "ungraded": 0, "error": 0, "cancelled": 0}
