"""Which sandbox a run gets, and what a person is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor_grader.errors import UserError
from proctor_operator.sandbox import choose_sandbox, python_view
from proctor_operator.sandbox.choose import LOOPBACK_IN_REACH, NESTING_ALLOWED, NOTHING_HIDDEN

BROKEN = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
OLD = f"""#!{sys.executable} -I
# An old bubblewrap, which does not know one of the options.
import os, sys
if b"--disable-userns" in os.read(int(sys.argv[2]), 1 << 20).split(bytes(1)):
    sys.exit("bwrap: Unknown option --disable-userns")
os.write(int(sys.argv[4]), b'{{ "child-pid": %d }}\\n{{ "exit-code": 0 }}\\n' % os.getpid())
"""


def fake(folder: Path, text: str) -> Path:
    """A PATH on which bubblewrap is this."""
    (folder / "bwrap").write_text(text)
    (folder / "bwrap").chmod(0o755)
    return folder


@pytest.mark.parametrize("mode", ["auto", "bwrap"])
@pytest.mark.parametrize(
    ("network", "notices"), [(True, (LOOPBACK_IN_REACH,)), (False, ())], ids=["shared", "cut"]
)
def test_bubblewrap_that_works_is_taken(
    bubblewrap_path: Path, mode: str, network: bool, notices: tuple[str, ...]
) -> None:
    sandbox, told = choose_sandbox(mode, network=network)
    sandbox.close()

    assert (sandbox.name, told) == ("bwrap", notices)


def test_none_says_that_nothing_is_hidden() -> None:
    sandbox, told = choose_sandbox("none")
    sandbox.close()

    assert (sandbox.name, told) == ("none", (NOTHING_HIDDEN, LOOPBACK_IN_REACH))


@pytest.mark.parametrize(
    ("program", "why"),
    [
        pytest.param(None, "bwrap is not on the PATH", id="not-installed"),
        pytest.param(BROKEN, "No permissions to create new namespace", id="not-allowed"),
        pytest.param("#!/no/such\n", "bwrap", id="not-executable"),
    ],
)
def test_bubblewrap_that_does_not_work_is_done_without_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, why: str
) -> None:
    if program is not None:
        fake(tmp_path, program)
    monkeypatch.setenv("PATH", str(tmp_path))

    sandbox, told = choose_sandbox("auto")
    sandbox.close()

    assert sandbox.name == "none"
    assert told[0].startswith(NOTHING_HIDDEN)
    assert why in told[0]
    with pytest.raises(UserError, match="apt-get install bubblewrap") as caught:
        choose_sandbox("bwrap")
    assert why in str(caught.value)
    with pytest.raises(UserError, match="--network none"):
        choose_sandbox("auto", network=False)


def test_an_old_bubblewrap_is_taken_with_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(fake(tmp_path, OLD)), prepend=":")

    sandbox, told = choose_sandbox("bwrap")
    sandbox.close()

    assert sandbox.name == "bwrap"
    assert told == (NESTING_ALLOWED, LOOPBACK_IN_REACH)


def test_the_network_cant_be_cut_without_a_sandbox() -> None:
    with pytest.raises(UserError, match="--network none"):
        choose_sandbox("none", network=False)


def test_an_unknown_mode_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UserError, match=r"did you mean 'bwrap'\?"):
        choose_sandbox("bwarp")


def test_python_is_seen_without_the_folder_that_the_package_lies_in() -> None:
    import proctor_grader

    package = Path(str(proctor_grader.__file__)).parent

    assert package in python_view()
    assert package.parent not in python_view()
    assert Path("/") not in python_view()
