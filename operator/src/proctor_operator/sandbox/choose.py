"""Which sandbox a run gets, found by trying it, and what a person has to be told about it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import proctor_grader
from proctor_grader.errors import UserError
from proctor_grader.problems import suggestion
from proctor_operator.sandbox.bare import BareSandbox
from proctor_operator.sandbox.base import Command, Stop, View
from proctor_operator.sandbox.bubblewrap import BubblewrapSandbox

if TYPE_CHECKING:
    from proctor_operator.sandbox.base import Sandbox

MODES = ("auto", "bwrap", "none")
NOTHING_HIDDEN = (
    "no sandbox: nothing hides the answer key, your files or other units' work from the agent"
)
LOOPBACK_IN_REACH = (
    "the agent shares this machine's network: services on loopback are in its reach "
    "(--network none cuts it off)"
)
NESTING_ALLOWED = (
    "bubblewrap is older than 0.8: the agent can make user namespaces of its own, which widens "
    "what it can ask of the kernel"
)
_REMEDY = (
    "install bubblewrap (apt-get install bubblewrap) and allow user namespaces "
    "(sysctl user.max_user_namespaces; in a container: a seccomp profile that admits them), "
    "or accept that nothing is hidden: --sandbox none"
)
_PROBE_SECONDS = 20.0


def choose_sandbox(mode: str, *, network: bool = True) -> tuple[Sandbox, tuple[str, ...]]:
    """Open the sandbox that a mode asks for; close it when the run is over.

    Args:
        mode: `auto` takes bubblewrap where it really works, `bwrap` insists on it, `none` goes
            without.
        network: whether processes will share the host's network.

    Returns:
        The sandbox, and what a person should know, for the screen and the run's record.

    Raises:
        UserError: bubblewrap was asked for, or is needed to cut the network off, and does not work.
    """
    if mode not in MODES:
        raise UserError(
            f"unknown mode '{mode}' (expected {', '.join(MODES)}){suggestion(mode, MODES)}",
            where="--sandbox",
        )
    if mode == "none":
        if not network:
            raise _no_network_without_sandbox("--sandbox none has no network of its own")
        return BareSandbox(), (NOTHING_HIDDEN, LOOPBACK_IN_REACH)
    shared = (LOOPBACK_IN_REACH,) if network else ()
    problem = ""
    for no_nesting in (True, False):
        sandbox, problem = _working_bubblewrap(no_nesting=no_nesting, network=network)
        if sandbox is not None:
            return sandbox, shared if no_nesting else (NESTING_ALLOWED, *shared)
    if mode == "bwrap":
        raise UserError(f"bubblewrap does not work: {problem}", where="--sandbox", remedy=_REMEDY)
    if not network:
        raise _no_network_without_sandbox(f"bubblewrap does not work ({problem})")
    return BareSandbox(), (f"{NOTHING_HIDDEN} (bubblewrap does not work: {problem})", *shared)


def python_view() -> tuple[Path, ...]:
    """What a sandboxed process must read to run this very Python with `proctor_grader` in it."""
    prefixes = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    package = Path(str(proctor_grader.__file__)).parent
    # The resolved ones too: an environment may point at its Python through a link.
    places = [*prefixes, *(prefix.resolve() for prefix in prefixes), package]
    return tuple(dict.fromkeys(places))


def _working_bubblewrap(*, no_nesting: bool, network: bool) -> tuple[Sandbox | None, str]:
    """Open bubblewrap if a process starts in it, else say what stands in the way."""
    program = shutil.which("bwrap")
    if program is None:
        return None, "bwrap is not on the PATH"
    sandbox = BubblewrapSandbox(str(Path(program).resolve()), no_nesting=no_nesting)
    try:
        problem = _problem_of(sandbox, network=network)
    except BaseException:
        sandbox.close()
        raise
    if problem:
        sandbox.close()
        return None, problem
    return sandbox, ""


def _problem_of(sandbox: Sandbox, *, network: bool) -> str:
    with tempfile.TemporaryDirectory(prefix="proctor-probe-") as folder:
        log = Path(folder, "log")
        command = Command(
            argv=("true",),
            env={"PATH": os.defpath},
            cwd=Path("/"),
            stdout=log,
            stderr=None,
            timeout_seconds=_PROBE_SECONDS,
            grace_seconds=0,
            max_output_bytes=4096,
        )
        tmp = Path(folder, "tmp")
        tmp.mkdir()
        end = sandbox.run(command, View(writable=(), readable=(), tmp=tmp, network=network), Stop())
    if end.is_normal:
        return ""
    return end.start_error or f"a trial process ended with {end.exit_code or end.signal}"


def _no_network_without_sandbox(message: str) -> UserError:
    remedy = "install bubblewrap (--sandbox bwrap), or leave the network as it is (--network host)"
    return UserError(message, where="--network none", remedy=remedy)
