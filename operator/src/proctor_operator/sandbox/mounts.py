"""What a process sees inside bubblewrap, as bubblewrap's options.

Everything keeps its own path, so that paths in a transcript mean the same inside and outside.
Parent folders appear by name and empty; the sources of all mounts can be read in
`/proc/self/mountinfo`.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proctor_operator.sandbox.base import View

_SHM = "/dev/shm"  # noqa: S108 - inside, where it is the process's own
_SHM_BYTES = 256 * 1024 * 1024
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC_FOLDERS = (
    "alternatives",
    "ssl/certs",
    "pki/ca-trust",
    "pki/tls/certs",
    "ca-certificates/extracted",
)
_ETC_FILES = ("ld.so.cache", "resolv.conf", "hosts", "localtime", "ssl/openssl.cnf")
_PROC_RISKS = {"acpi", "asound", "driver", "fs", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger"}
_ETC_TEXTS = {
    "passwd": "agent:x:1000:1000:agent:/tmp:/bin/sh\n",
    "group": "agent:x:1000:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
"""Own words instead of the host's: its lookup services can't be reached from inside."""


class Sight(Enum):
    """How a path is seen: as written here, only read, or not at all."""

    WRITE = "write"
    READ = "read"
    HIDE = "hide"


Mount = tuple[str, Sight]


def plan_mounts(view: View, system: Iterable[Mount]) -> list[Mount]:
    """Order a view's paths so that the innermost counts, without those that change nothing.

    Args:
        view: whose paths to mount.
        system: what every process sees before them.

    Returns:
        Parents before what lies in them.
    """
    mounts = list(system)
    wanted: list[Mount] = [(str(path), Sight.READ) for path in view.readable]
    if view.hidden:
        shown = [path for path, _ in (*mounts, *wanted)]
        wanted += [(path, Sight.HIDE) for path in _places_of(view.hidden, shown)]
    wanted += [(str(path), Sight.WRITE) for path in view.writable]
    if view.branch is not None:
        wanted.append((str(view.branch), Sight.WRITE))
    wanted.sort(key=lambda mount: mount[0].split("/"))  # stable: of one path the last one counts
    planned = []
    for path, sight in wanted:
        if sight is not sight_of(path, mounts):
            mounts.append((path, sight))
            planned.append((path, sight))
    return planned


def sight_of(path: str, mounts: Iterable[Mount]) -> Sight:
    """How a path is seen under mounts of which the later ones lie over the earlier."""
    found = Sight.HIDE
    for folder, sight in mounts:
        if path == folder or path.startswith(f"{folder}/"):
            found = sight
    return found


def mount_options(mounts: Iterable[Mount]) -> Iterator[str]:
    """Options for planned mounts; a hidden folder becomes empty, a hidden file unreadable."""
    for path, sight in mounts:
        if sight is Sight.WRITE:
            yield from ("--bind", path, path)
        elif sight is Sight.READ:
            yield from ("--ro-bind", path, path)
        elif os.path.isdir(path):
            yield from ("--tmpfs", path)
        elif os.path.lexists(path):
            yield from ("--ro-bind", "/dev/null", path)


def sealing_options(mounts: Iterable[Mount]) -> Iterator[str]:
    """Options that come last: nothing that lives in memory can be written any more."""
    for path, sight in mounts:
        if sight is Sight.HIDE and os.path.isdir(path):
            yield from ("--remount-ro", path)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/etc", "--remount-ro", "/")


def system_mounts() -> list[Mount]:
    """What every process sees of the host's own tree."""
    folders = [name for name in _LINKED if os.path.isdir(f"/{name}") and not _is_link(name)]
    return [(f"/{name}", Sight.READ) for name in ("usr", *folders)]


def linked_folders() -> list[Mount]:
    """Folders such as `/bin` that are links into `/usr`, inside as outside."""
    return [(f"/{name}", Sight.READ) for name in _LINKED if _is_link(name)]


def system_options(etc: Path) -> Iterator[str]:
    """Options that come first: the system's programs and libraries, `/etc`, `/proc` and `/dev`.

    Args:
        etc: a folder that `fill_etc` has filled.
    """
    yield from mount_options(system_mounts())
    for name in _LINKED:
        if _is_link(name):
            yield from ("--symlink", os.readlink(f"/{name}"), f"/{name}")
    # Writable until it is sealed, so that a view may add to it.
    yield from ("--bind", str(etc), "/etc")
    for name in _ETC_FOLDERS:
        if os.path.isdir(f"/etc/{name}"):
            yield from ("--ro-bind", f"/etc/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc")
    for path in _writable_by_root():
        yield from ("--ro-bind", path, path)
    yield from ("--dev", "/dev", "--size", str(_SHM_BYTES), "--tmpfs", _SHM)


def fill_etc(etc: Path) -> None:
    """Make the small `/etc` that programs need to find libraries, hosts and certificates.

    Raises:
        OSError: the folder can't be written.
    """
    for name, text in _ETC_TEXTS.items():
        _fresh(etc / name).write_text(text)
    for name in _ETC_FILES:
        source = Path("/etc", name)
        if source.is_file():
            _fresh(etc / name).write_bytes(source.read_bytes())


def _writable_by_root() -> list[str]:
    """What of `/proc` the host's root may change even without capabilities; empty for others.

    A user namespace does not help: the kernel looks at the user number on the host, and a written
    `core_pattern` runs a program outside.
    """
    if os.geteuid() != 0:
        return []
    entries = (entry for entry in Path("/proc").iterdir() if entry.name in _PROC_RISKS)
    return sorted(str(entry) for entry in entries if _has_writable_file(entry))


def _has_writable_file(path: Path) -> bool:
    files = [path, *path.rglob("*")] if path.name != "sys" else [path / "kernel/core_pattern"]
    return any(file.is_file() and file.stat().st_mode & 0o222 for file in files)


def _fresh(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _is_link(name: str) -> bool:
    return os.path.islink(f"/{name}")


def _places_of(hidden: Iterable[Path], shown: Iterable[str]) -> Iterator[str]:
    """Where hidden things would appear inside: each shown path is a mount of what it leads to."""
    sources = [(path, os.path.realpath(path)) for path in shown]
    for thing in hidden:
        real = os.path.realpath(thing)
        for path, source in sources:
            if real == source or real.startswith(f"{source}/"):
                yield path + real[len(source) :]
