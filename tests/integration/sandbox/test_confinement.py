"""What bubblewrap keeps from an agent: the answer key, the host, and the means to get at them."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proctor_operator.sandbox import Sandbox, choose_sandbox
from tests.integration.sandbox.agents import Unit

READABLE = "cat {path} 2>/dev/null && echo seen"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """An answer key beside the attempt's folder."""
    path = tmp_path / "set" / "eval.json"
    path.parent.mkdir()
    path.write_text("42")
    return path


def test_the_eval_set_is_not_there(confined: Unit, key: Path) -> None:
    confined.shell(READABLE.format(path=key))

    assert confined.said() == ""


def test_without_a_sandbox_it_is_which_is_why_there_is_a_warning(
    none: Sandbox, key: Path, tmp_path: Path
) -> None:
    unit = Unit.make(none, tmp_path / "unit")

    unit.shell(READABLE.format(path=key))

    assert unit.said() == "42seen\n"


def test_other_units_and_their_logs_are_not_there(confined: Unit, tmp_path: Path) -> None:
    other = Unit.make(confined.sandbox, tmp_path / "other")
    other.shell("echo secret")
    (other.work / "file").write_text("secret")

    confined.shell(f"ls {tmp_path}; cat {other.stdout} {other.work}/file")

    assert confined.said() == "unit\n"


def test_its_own_logs_are_not_there(confined: Unit) -> None:
    confined.shell(f"echo x; ls {confined.folder}")

    assert confined.said() == "x\nhome\ninput\noutput\ntmp\nwork\n".replace("tmp\n", "")


def test_home_and_system_settings_of_the_host_are_not_there(confined: Unit) -> None:
    places = f"{Path.home()} /home /var /run /sys /boot /srv /mnt /opt"
    confined.shell(f"for place in {places}; do ls -A $place; done; cat /etc/shadow")

    # Folders on the way to the Python that runs these tests are there by name.
    names = set(confined.said().split())
    assert names <= {part for path in confined.view.readable for part in path.parts}
    assert "/etc/shadow: No such file" in confined.stderr.read_text()


def test_the_root_holds_only_the_system(confined: Unit) -> None:
    confined.shell("ls -A /")

    allowed = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"}
    ways = {path.parts[1] for path in (*confined.view.writable, *confined.view.readable)}
    assert set(confined.said().split()) <= allowed | ways


def test_ordinary_tools_work(confined: Unit) -> None:
    end = confined.shell(
        "set -e; awk 'BEGIN { print 6 * 7 }'; getent hosts localhost >&2; id -un; date >&2;"
        "test -s /etc/ssl/certs/ca-certificates.crt -o ! -e /usr/share/ca-certificates"
    )

    assert end.is_normal, confined.stderr.read_text()
    assert confined.said().split() == ["42", "agent"]


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("{unit}/input/new", id="its-input"),
        pytest.param("/new", id="the-root"),
        pytest.param("/usr/new", id="the-system"),
        pytest.param("/etc/new", id="settings"),
        pytest.param("/dev/new", id="devices"),
        pytest.param("/proc/sys/kernel/core_pattern", id="a-program-that-the-host-would-run"),
        pytest.param("/proc/sys/vm/drop_caches", id="the-hosts-memory"),
        pytest.param("/proc/sysrq-trigger", id="the-hosts-keyboard"),
    ],
)
def test_it_can_write_nowhere_but_in_its_own_folders(confined: Unit, place: str) -> None:
    path = place.format(unit=confined.folder)
    end = confined.shell(f"cat {path} > /tmp/same 2>/dev/null; cat /tmp/same > {path}")

    assert not end.is_normal
    assert path.startswith("/proc") or not Path(path).exists()


def test_nothing_of_the_hosts_kernel_can_be_written(confined: Unit) -> None:
    confined.shell("find /proc -type f -writable -not -path '/proc/[0-9]*' 2>/dev/null")

    assert confined.said() == ""


def test_its_own_folders_can_be_written_and_are_the_hosts(confined: Unit) -> None:
    folders = [*confined.view.writable, Path("/tmp")]
    end = confined.shell("".join(f"echo x > {folder}/file && " for folder in folders) + "true")

    assert end.is_normal
    assert all((folder / "file").exists() for folder in confined.view.writable)
    assert (confined.view.tmp / "file").exists()


def test_shared_memory_is_bounded(confined: Unit) -> None:
    end = confined.shell("head -c 300000000 /dev/zero > /dev/shm/file")

    assert end.exit_code == 1
    assert "No space left" in confined.stderr.read_text()


def test_it_has_no_rights_and_can_get_none(confined: Unit) -> None:
    confined.shell("grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status")

    values = dict(line.split(":\t") for line in confined.said().splitlines())
    assert values.pop("NoNewPrivs") == "1"
    assert set(values.values()) == {"0000000000000000"}


def test_it_makes_no_user_namespace(confined: Unit) -> None:
    assert confined.run("unshare", "--user", "true").exit_code != 0


def test_it_is_not_root_and_sees_no_process_but_its_own(confined: Unit) -> None:
    confined.shell("id -u; hostname; cat /proc/[0-9]*/comm")

    number, host, *names = confined.said().split()
    assert (number, host) == ("1000", "proctor")
    assert set(names) <= {"bwrap", "sh", "cat"}


def test_the_runners_environment_and_paths_are_in_no_process(
    confined: Unit, monkeypatch: pytest.MonkeyPatch, key: Path
) -> None:
    monkeypatch.setenv("RUNNERS_SECRET", "hunter2hunter2")
    confined.view = replace(confined.view, hidden=(key.parent,))

    confined.shell("cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; cat /proc/self/mountinfo")

    assert "hunter2" not in confined.said()
    assert str(key.parent) not in confined.said()


def test_hidden_folders_and_files_are_empty_below_readable_ones(
    confined: Unit, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    hidden = shown / "deep" / "set"
    hidden.mkdir(parents=True)
    (hidden / "eval.json").write_text("42")
    (shown / "gold.csv").write_text("43")
    (shown / "tool.txt").write_text("tool")
    (shown / "alias").symlink_to(hidden)
    confined.view = replace(
        confined.view,
        readable=(*confined.view.readable, shown),
        hidden=(shown / "alias", shown / "gold.csv", tmp_path / "missing"),
    )

    confined.shell(
        f"cat {shown}/tool.txt; ls -A {hidden}; cat {shown}/gold.csv; echo > {hidden}/new"
    )

    assert confined.said() == "tool"
    assert sorted(path.name for path in hidden.iterdir()) == ["eval.json"]


def test_a_set_below_the_system_can_be_hidden_and_a_unit_below_it_shown(bwrap: Sandbox) -> None:
    places = Path("/usr/src") if os.access("/usr/src", os.W_OK) else None
    if places is None:
        pytest.skip("only root can put a set below /usr")
    root = places / f"proctor-test-{os.getpid()}"
    try:
        unit = Unit.make(bwrap, root / "state" / "unit")
        (root / "eval.json").write_text("42")
        unit.view = replace(unit.view, hidden=(root,))

        end = unit.shell(f"cat {root}/eval.json; ls -A {root} {root}/state; echo x > file")

        assert end.is_normal
        assert unit.said().split() == [f"{root}:", "state", f"{root}/state:", "unit"]
        assert (unit.work / "file").exists()
    finally:
        shutil.rmtree(root)


def test_a_program_out_of_sight_is_told_with_the_remedy(confined: Unit, tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "my-agent"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho hello\n")
    tool.chmod(0o755)
    confined.environment = {"PATH": f"{tool.parent}:{os.defpath}"}

    end = confined.run("my-agent")

    assert "--agent-path" in end.start_error
    assert str(tool) in end.start_error
    confined.view = replace(confined.view, readable=(*confined.view.readable, tool.parent))
    assert confined.run("my-agent").is_normal
    assert confined.said() == "hello\n"


@pytest.mark.parametrize("program", ["/bin/true", "/usr/bin/true", "true"])
def test_programs_of_the_system_are_found_by_every_name(confined: Unit, program: str) -> None:
    assert confined.run(program).is_normal


def test_a_unit_may_lie_in_the_hosts_shared_memory(bwrap: Sandbox) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        unit = Unit.make(bwrap, Path(folder, "unit"))

        assert unit.shell("echo x > file").is_normal
        assert (unit.work / "file").exists()


def test_a_program_out_of_sight_gives_way_to_one_in_sight(confined: Unit, tmp_path: Path) -> None:
    (tmp_path / "true").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "true").chmod(0o755)
    confined.environment = {"PATH": f"{tmp_path}:{os.defpath}"}

    assert confined.run("true").is_normal


def test_this_python_runs_with_the_package_in_it(confined: Unit) -> None:
    import proctor_grader

    confined.environment["PYTHONPATH"] = str(Path(str(proctor_grader.__file__)).parent.parent)

    end = confined.run(
        sys.executable, "-c", "import proctor_grader.contract, sqlite3, ssl; print('fine')"
    )

    assert end.is_normal, confined.stderr.read_text()
    assert confined.said() == "fine\n"


@pytest.fixture
def port() -> Iterator[int]:
    """A service on the host's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"


@pytest.mark.parametrize("network", [True, False], ids=["shared", "cut"])
def test_the_hosts_loopback_is_in_reach_only_with_its_network(
    confined: Unit, port: int, network: bool
) -> None:
    confined.view = replace(confined.view, network=network)

    assert confined.python(CONNECT, str(port)).is_normal == network


def test_what_is_in_sight_keeps_its_path(confined: Unit) -> None:
    confined.shell("pwd")

    assert confined.said() == f"{confined.work}\n"


def test_a_closed_sandbox_leaves_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bubblewrap_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sandbox, _ = choose_sandbox("bwrap")
    assert list(tmp_path.iterdir()) != []

    sandbox.close()
    sandbox.close()

    assert list(tmp_path.iterdir()) == []
