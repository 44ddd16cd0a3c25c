"""Build the example's DuckDB warehouse: python build.py FILE.

DuckDB's TPC-H extension wants exactly its own version of duckdb, so it lives in an environment of
its own, made once with pip under ~/.cache/proctor (or $PROCTOR_TEST_CACHE). After that no network
is needed. Beside FILE comes FILE.answers.json: the benchmark's published answers.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

EXTENSION = "duckdb-extension-tpch==1.5.5"


def cache_folder() -> Path:
    """Where the environment lies, outside the tree, so that clones share it."""
    named = os.environ.get("PROCTOR_TEST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "proctor"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; waits for it. The kernel frees it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def environment() -> Path:
    """Return the environment that holds the extension; makes it when it is not there."""
    folder = cache_folder() / f"tpch-{EXTENSION.partition('==')[2]}"
    with locked(folder.with_name(f"{folder.name}.lock")):
        # A Python that was upgraded away leaves a dangling link behind.
        if not ((folder / "complete").exists() and (folder / "bin" / "python").exists()):
            shutil.rmtree(folder, ignore_errors=True)
            run(sys.executable, "-m", "venv", str(folder))
            run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", EXTENSION)
            (folder / "complete").touch()
    return folder


def build(target: Path) -> None:
    """Write the warehouse and the published answers; a target is there as a whole or not at all."""
    folder = environment()
    extension = next(folder.glob("lib/python3*/site-packages/duckdb_extension_tpch/**/*_extension"))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tpch-") as scratch:
        made, answers = Path(scratch, target.name), Path(scratch, "answers.json")
        generator = Path(__file__).with_name("dbgen.py")
        run(str(folder / "bin" / "python"), *map(str, (generator, extension, made, answers)))
        # A log of an older file must not be replayed into the new one.
        target.with_name(target.name + ".wal").unlink(missing_ok=True)
        answers.replace(target.with_name(target.name + ".answers.json"))
        made.replace(target)


def run(*command: str) -> None:
    """Run a command; what it says goes to the terminal."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]).absolute())
    except IndexError:
        sys.exit("usage: python build.py FILE")
    except subprocess.CalledProcessError as error:
        sys.exit(f"could not build the warehouse: {' '.join(error.cmd[:4])} ... failed")
