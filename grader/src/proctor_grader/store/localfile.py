"""Files beside a store that appear whole or not at all."""

from __future__ import annotations

import contextlib
import secrets
from typing import IO, TYPE_CHECKING

from proctor_grader.store.fault import reported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK_BYTES = 1024 * 1024
"""What is held in memory of a large file."""


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that gets its name, replacing what had it, once the block is through.

    An error in the block leaves `path` as it was and nothing beside it.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with reported(str(path)):
            with draft.open("xb") as file:
                yield file
            draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
