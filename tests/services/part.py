"""The real parts that tests need: where each is found, and how it is installed.

Knows nothing of how a part is started.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

S3_MODULE = "github.com/versity/versitygw/cmd/versitygw"
S3_VERSION = "v1.8.0"


@dataclass(frozen=True, slots=True)
class Part:
    """One program (or family of programs) that some tests cannot do without."""

    name: str
    package: str  # Debian's package; "" when it is built with Go
    find: Callable[[], Path | None]

    @property
    def remedy(self) -> str:
        """What to do when the part is missing."""
        how = f"apt-get install {self.package}" if self.package else "built with Go"
        by_make = "run 'make test' or 'python -m tests.services install' as root"
        return f"{self.name} is missing: {by_make} ({how})"


class MissingPartError(Exception):
    """A real part is not on this machine; the text says how to install it."""


def cache_folder() -> Path:
    """Where programs that are built here lie, outside the tree, so that clones share them."""
    named = os.environ.get("PROCTOR_TEST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "proctor" / "bin"


def postgres_programs() -> Path | None:
    """Folder of initdb and postgres: PROCTOR_TEST_POSTGRES, else the newest that Debian has."""
    named = os.environ.get("PROCTOR_TEST_POSTGRES")
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(installed, key=lambda folder: int(folder.parent.name), reverse=True)
    folders = [Path(named)] if named else newest_first
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _on_path(*names: str) -> Path | None:
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found) if found else None


def _s3_program() -> Path | None:
    program = cache_folder() / "versitygw"
    return program if program.exists() else None


def _atomic_library() -> Path | None:
    found = (Path("/usr").glob(f"{folder}/libatomic.so.1") for folder in ("lib*", "lib/*-linux-*"))
    return next(itertools.chain.from_iterable(found), None)


POSTGRES = Part("PostgreSQL", "postgresql", postgres_programs)
CHROMIUM = Part("Chromium", "chromium", lambda: _on_path("chromium", "chromium-browser"))
ATOMIC = Part("libatomic (for playwright's Node)", "libatomic1", _atomic_library)
BUBBLEWRAP = Part("bubblewrap", "bubblewrap", lambda: _on_path("bwrap"))
S3 = Part("the S3 server (versitygw)", "", _s3_program)
PARTS = (POSTGRES, CHROMIUM, ATOMIC, BUBBLEWRAP, S3)


def require(part: Part) -> Path:
    """Where the part lies.

    Raises:
        MissingPartError: it is not on this machine.
    """
    found = part.find()
    if found is None:
        raise MissingPartError(part.remedy)
    return found
