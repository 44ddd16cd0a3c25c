"""Installs the real parts that are missing: Debian's packages, and the S3 server built with Go."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.services.part import PARTS, S3, S3_MODULE, S3_VERSION, Part, cache_folder


class InstallError(Exception):
    """A part could not be installed; the text says why and what to do."""


def install() -> None:
    """Bring every missing part; quick when there is nothing to do.

    Raises:
        InstallError: a part is still missing.
    """
    packages = [part for part in PARTS if part.package and part.find() is None]
    if packages:
        _install_packages(packages)
    if not _s3_is_built():
        _build_s3()
    still_missing = [part.name for part in PARTS if part.find() is None]
    if still_missing:
        raise InstallError(f"still missing after the installation: {', '.join(still_missing)}")


def _install_packages(parts: list[Part]) -> None:
    names = [part.package for part in parts]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        missing = ", ".join(part.name for part in parts)
        command = f"apt-get install {' '.join(names)}"
        raise InstallError(f"missing: {missing}: run as root on Debian or Ubuntu: {command}")
    # RUNLEVEL=1: Debian's policy starts no service in that run level, PostgreSQL's own cluster too.
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
    _run("update package lists", [*apt, "update"], quiet)
    wanted = [*apt, "install", "--no-install-recommends", *names]
    _run(f"install {', '.join(names)}", wanted, quiet)


def _s3_is_built() -> bool:
    program = S3.find()
    if program is None:
        return False
    mark = _s3_mark()
    if not mark.exists():
        # Built by hand: its build information tells the version as surely as our mark.
        told = _build_information(program)
        if f"\t{S3_VERSION}\t" not in told:
            return False
        mark.write_text(f"{S3_MODULE}@{S3_VERSION}\n")
    return mark.read_text() == f"{S3_MODULE}@{S3_VERSION}\n"


def _s3_mark() -> Path:
    return cache_folder() / ".versitygw.built"


def _build_information(program: Path) -> str:
    if shutil.which("go") is None:
        return ""
    told = subprocess.run(
        ["go", "version", "-m", str(program)], capture_output=True, text=True, check=False
    )
    return told.stdout


def _build_s3() -> None:
    if shutil.which("go") is None:
        raise InstallError(
            f"missing: {S3.name}: it is built with Go; install Go and put it on PATH"
        )
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".build.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _s3_is_built():  # by the process that held the lock
            return
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            settings = {"GOBIN": scratch, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
            flags = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
            what = [*flags, f"{S3_MODULE}@{S3_VERSION}"]
            _run("build the S3 server", ["go", "install", *what], os.environ | settings)
            Path(scratch, "versitygw").replace(folder / "versitygw")
            _s3_mark().write_text(f"{S3_MODULE}@{S3_VERSION}\n")


def _run(label: str, command: list[str], environment: dict[str, str]) -> None:
    began = time.monotonic()
    print(f"services: {label} ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise InstallError(f"could not {label}: {' '.join(command)}\n{done.stdout[-4000:]}")
    seconds = time.monotonic() - began
    print(f"services: {label}: done in {seconds:.1f} s", file=sys.stderr, flush=True)
