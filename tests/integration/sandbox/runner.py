"""A runner in a process of its own, for tests that kill it: `MODE FOLDER THREADS ARGV...`.

Runs the command again and again on long-lived threads, and says on its output when it begins.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from proctor_operator.sandbox import Stop, choose_sandbox
from tests.integration.sandbox.agents import Unit


def main() -> None:
    """Run until killed."""
    mode, folder, threads, *argv = sys.argv[1:]
    sandbox, _ = choose_sandbox(mode)

    def work(number: int) -> None:
        unit = Unit.make(sandbox, Path(folder, str(number)))
        while True:
            end = sandbox.run(unit.command(*argv), unit.view, Stop())
            if end.start_error:
                sys.exit(end.start_error)

    with ThreadPoolExecutor(int(threads)) as pool:
        print("ready", flush=True)
        list(pool.map(work, range(int(threads))))


if __name__ == "__main__":
    main()
