"""What a process prints: moved from a pipe into a file, up to a limit, without ever stopping it.

A pipe, not the file itself: a program that opens `/dev/stdout` would truncate the file, and one
that prints two gigabytes would fill the disk between two looks at it.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK_BYTES = 65_536
_LEFT_IN_PIPE_BYTES = 2 * 1024 * 1024
_LOG = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Capture:
    """One stream of a process. Belongs to one thread.

    Attributes:
        reader: our end of the pipe; never blocks.
        writer: the process's end; to be closed on our side once it has started.
        truncated: something was dropped.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.truncated = False
        self._path = path
        self._room = max_bytes
        self._file: int | None = None
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def close_writer(self) -> None:
        """Let go of the process's end, so that its end can be seen."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def pump(self) -> bool:
        """Take in what is there, a chunk at most; False once nothing can come any more."""
        try:
            data = os.read(self.reader, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if data:
            self._keep(data)
        return bool(data)

    def drain(self) -> None:
        """Take in what is left in the pipe, which somebody may still hold open."""
        for _ in range(_LEFT_IN_PIPE_BYTES // _CHUNK_BYTES):
            try:
                data = os.read(self.reader, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not data:
                return
            self._keep(data)
        self.truncated = True

    def head(self, size: int) -> str:
        """The first bytes as text, for a message."""
        if self._file is None:
            return ""
        return os.pread(self._file, size, 0).decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Close what is open; the file stays."""
        self.close_writer()
        os.close(self.reader)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _keep(self, data: bytes) -> None:
        kept = data[: self._room]
        if len(kept) < len(data):
            self.truncated = True
        if not kept:
            return
        try:
            if self._file is None:
                self._file = os.open(self._path, _LOG, 0o600)
            written = os.write(self._file, kept)
        except OSError:
            # The disk is full: the process must not hang on its pipe for that. Storing the
            # evidence will tell, since it needs the same disk.
            written = 0
        if written < len(kept):
            self.truncated = True
            self._room = 0
        self._room -= min(written, self._room)
