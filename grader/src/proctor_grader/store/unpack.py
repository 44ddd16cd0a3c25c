"""Unpacking a `tar.gz` from anywhere: nothing outside of the target, nothing through a link."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from proctor_grader.errors import UserError
from proctor_grader.store.fault import reported
from proctor_grader.store.skipped import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_FILES,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    Skipped,
    SkippedLog,
    max_visits,
)
from proctor_grader.store.tarstream import ArchiveError, Member, TarReader

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class UnpackReport:
    """What came out of an archive.

    Attributes:
        files: regular files.
        bytes: of their content.
        skipped: what was left out; the first hundred.
        skipped_count: all of that.
    """

    files: int
    bytes: int
    skipped: tuple[Skipped, ...]
    skipped_count: int


def unpack_tree(
    archive: Path | IO[bytes],
    target: Path,
    *,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
) -> UnpackReport:
    """Unpack regular files and folders; links and special files are skipped and told.

    After an error nothing is left of the target.

    Args:
        archive: a `tar.gz`, a file or a stream, which is left open.
        target: a new folder, or an empty one.
        max_files: regular files at most.
        max_bytes: of content at most, also of what is skipped.
        max_depth: names in a path at most.

    Raises:
        ArchiveError: it is damaged, larger than that, or has a member twice or outside of itself.
        UserError: the target is not empty.
        StoreFull: there is no room.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(archive.open("rb")) if isinstance(archive, Path) else archive
        stack.enter_context(reported(str(target)))
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            remedy = "choose another folder, or empty it"
            raise UserError("is not empty", where=str(target), remedy=remedy)
        reader = TarReader(stream, max_headers=max_visits(max_files))
        unpacker = _Unpacker(reader, str(target), max_files, max_bytes, max_depth)
        try:
            for member in reader:
                unpacker.unpack(member)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
    skipped = unpacker.skipped
    return UnpackReport(unpacker.files, unpacker.total, tuple(skipped.first), skipped.count)


@dataclass(slots=True)
class _Unpacker:
    reader: TarReader
    target: str
    max_files: int
    max_bytes: int
    max_depth: int
    files: int = 0
    total: int = 0
    left_out: int = 0
    folders: set[str] = field(default_factory=set)
    skipped: SkippedLog = field(default_factory=SkippedLog)

    def unpack(self, member: Member) -> None:
        if self.total + self.left_out + member.size_bytes > self.max_bytes:
            raise ArchiveError(f"the archive has more than {self.max_bytes} bytes of content")
        if len(member.names) > self.max_depth:
            raise ArchiveError(f"the archive has folders more than {self.max_depth} deep")
        path = "/".join(member.names)
        reason = _unfit(member, path)
        if reason:
            self.left_out += member.size_bytes
            self.skipped.add(path, reason)
            return
        try:
            if member.is_folder:
                self._make_folder(path)
            else:
                self._write(member, path)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise ArchiveError("the archive has a member twice, or below a file") from error

    def _make_folder(self, path: str) -> None:
        if not path or path in self.folders:
            return
        self._make_folder(path.rpartition("/")[0])
        if len(self.folders) >= max_visits(self.max_files):  # one member can ask for many
            raise ArchiveError("the archive has too many folders")
        os.mkdir(f"{self.target}/{path}")
        self.folders.add(path)

    def _write(self, member: Member, path: str) -> None:
        if self.files >= self.max_files:
            raise ArchiveError(f"the archive has more than {self.max_files} files")
        self._make_folder(path.rpartition("/")[0])
        rights = 0o777 if member.is_executable else 0o666  # the umask decides
        handle = os.open(f"{self.target}/{path}", _NEW, rights)
        with open(handle, "wb", buffering=0) as file:
            for chunk in self.reader.data():
                file.write(chunk)
        self.files += 1
        self.total += member.size_bytes


def _unfit(member: Member, path: str) -> str:
    if not member.is_folder and not member.is_file:
        return f"it is a {member.kind}"
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        return "its path is too long"
    if any(len(os.fsencode(name)) > MAX_NAME_BYTES for name in member.names):
        return "a name in its path is too long"
    return ""
