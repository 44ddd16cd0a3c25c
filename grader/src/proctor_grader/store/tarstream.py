"""Reading a tar stream that may be hostile, member by member, in constant memory.

`tarfile` is used for single headers only: its reader takes extended headers and sparse maps of any
size into memory, so a small compressed archive could fill it.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from proctor_grader.errors import ProctorError
from proctor_grader.store.localfile import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = tarfile.BLOCKSIZE
_MAX_EXTENSION_BYTES = 64 * 1024
_MAX_TRAILER_BYTES = 1024 * 1024
_EXTENSIONS = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE}
_IGNORED = {tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE}
_FILES = {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE}
_LINKS = {tarfile.SYMTYPE: "symbolic link", tarfile.LNKTYPE: "hard link"}
_WITHOUT_DATA = {tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, *_LINKS}


class ArchiveError(ProctorError):
    """An archive is damaged, or not one that may be unpacked."""

    default_reason = "BadArchive"


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of an archive.

    Attributes:
        names: of its path; none is empty, `.` or `..`; no names for the root.
        is_folder: neither is set for what is neither a file nor a folder.
        is_file: likewise.
        kind: for people: `file`, `folder`, `symbolic link`, ...
        size_bytes: of its content.
        is_executable: whether its owner may run it.
    """

    names: tuple[str, ...]
    is_folder: bool
    is_file: bool
    kind: str
    size_bytes: int
    is_executable: bool


class TarReader:
    """The members of a `tar.gz`, each once, in order; iterate, and take a member's data at once."""

    def __init__(self, stream: IO[bytes], *, max_headers: int) -> None:
        self._stream = gzip.GzipFile(fileobj=stream, mode="rb")
        self._headers_left = max_headers
        self._data_left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """Read from member to member, to the end of the stream.

        Raises:
            ArchiveError: the archive is damaged or has too many headers.
        """
        path: bytes | None = None
        size: int | None = None
        while (header := self._header()) is not None:
            kind = header.type
            if kind in _IGNORED:
                self._expect(header.size)
                self._skip()
            elif kind in _EXTENSIONS:
                data = self._extension(header)
                if kind == tarfile.GNUTYPE_LONGNAME:
                    path = data.rstrip(b"\0")
                elif kind == tarfile.XHDTYPE:
                    path, size = _attributes(data, path, size)
            else:
                if size is not None:
                    header.size = size
                member = _member(header, path)
                self._expect(member.size_bytes)
                yield member
                self._skip()
                path = size = None

    def data(self) -> Iterator[bytes]:
        """The content of the member at hand, in chunks."""
        while self._data_left:
            chunk = self._read(min(self._data_left, CHUNK_BYTES))
            self._data_left -= len(chunk)
            yield chunk

    def _header(self) -> tarfile.TarInfo | None:
        block = self._read(_BLOCK)
        if not block.strip(b"\0"):
            self._end()
            return None
        self._headers_left -= 1
        if self._headers_left < 0:
            raise ArchiveError("the archive has too many members")
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise _damaged() from error
        if header.size < 0 or header.type == tarfile.GNUTYPE_SPARSE:
            raise _damaged("it has a header that is not supported")
        return header

    def _extension(self, header: tarfile.TarInfo) -> bytes:
        if header.size > _MAX_EXTENSION_BYTES:
            raise _damaged("it has an extended header that is too large")
        self._expect(header.size)
        data = b"".join(self.data())
        self._skip()
        return data

    def _expect(self, size: int) -> None:
        self._data_left = size
        self._padding = -size % _BLOCK

    def _skip(self) -> None:
        for _ in self.data():
            pass
        self._read(self._padding)
        self._padding = 0

    def _end(self) -> None:
        # To the end of the stream, where its check sum is.
        left = _MAX_TRAILER_BYTES
        while chunk := self._some(left):
            left -= len(chunk)
            if not left:
                raise _damaged("there is data behind its end")

    def _read(self, size: int) -> bytes:
        chunks = []
        while size:
            chunk = self._some(size)
            if not chunk:
                raise _damaged("it ends too early")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _some(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _damaged() from error


def _member(header: tarfile.TarInfo, path: bytes | None) -> Member:
    name = header.name if path is None else path.decode("utf-8", "surrogateescape")
    is_file = header.type in _FILES
    is_folder = header.type == tarfile.DIRTYPE
    kind = "file" if is_file else "folder" if is_folder else _LINKS.get(header.type, "special file")
    return Member(
        names=_names(name),
        is_folder=is_folder,
        is_file=is_file,
        kind=kind,
        size_bytes=0 if header.type in _WITHOUT_DATA else header.size,
        is_executable=bool(header.mode & 0o100),
    )


def _names(path: str) -> tuple[str, ...]:
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if path.startswith("/") or ".." in names or "\0" in path:
        raise ArchiveError("the archive has a member that would lie outside of it")
    return names


def _attributes(
    data: bytes, path: bytes | None, size: int | None
) -> tuple[bytes | None, int | None]:
    """Path and size of the next member as an extended (pax) header says, else as they were."""
    position = 0
    while position < len(data):
        blank = data.find(b" ", position, position + 8)
        digits = data[position:blank]
        if blank < 0 or not digits.isdigit():
            raise _damaged()
        end = position + int(digits)
        name, sign, value = data[blank + 1 : end - 1].partition(b"=")
        if not blank + 1 < end <= len(data) or data[end - 1 : end] != b"\n" or not sign:
            raise _damaged()
        if name.startswith(b"GNU.sparse."):
            raise _damaged("it has a header that is not supported")
        if name == b"path":
            path = value
        elif name == b"size":
            if not value.isdigit() or len(value) > 18:
                raise _damaged()
            size = int(value)
        position = end
    return path, size


def _damaged(why: str = "it is no sound tar.gz") -> ArchiveError:
    return ArchiveError(f"the archive can't be read: {why}")
