"""Keeping credentials out of what is stored and out of what is shown. Pure but for `mask_file`.

Stored evidence loses known credentials only, since grading reads it; token shapes are for display.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor_grader.store.localfile import CHUNK_BYTES, new_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MIN_SECRET_CHARACTERS = 12
MASK = "***"
_MASK = MASK.encode()


class Masker:
    """Replaces known credentials by `***`, in every spelling that URLs, JSON and shells give them.

    Overlapping finds become one mask, so nothing of a credential is left beside another. Values
    below 12 characters or of digits only are left alone: an answer may hold them by chance.

    Source: design.md, section 7.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._needles = tuple(_needle(secret) for secret in sorted(set(secrets)) if _counts(secret))

    def __repr__(self) -> str:
        return f"Masker({len(self._needles)} secrets)"

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._needles)

    def mask_bytes(self, data: bytes) -> bytes:
        """The data without credentials."""
        return b"".join(self.mask_chunks((data,)))

    def mask_text(self, text: str) -> str:
        """The text without credentials."""
        masked = self.mask_bytes(text.encode("utf-8", "surrogatepass"))
        return masked.decode("utf-8", "surrogatepass")

    def mask_chunks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """A stream without credentials, also where one is cut by a chunk's border.

        Holds two chunks and the longest credential in memory.
        """
        overlap = max((needle.longest for needle in self._needles), default=1) - 1
        held = b""
        masked = 0  # bytes at the start of `held` that the last mask stands for
        for chunk in chunks:
            held += chunk
            # A find that starts before the cut is whole in what is held.
            cut = max(len(held) - overlap, 0)
            piece, masked = self._mask(held, cut, masked)
            yield piece
            held = held[cut:]
        yield self._mask(held, len(held), masked)[0]

    def mask_file(self, source: Path, target: Path) -> None:
        """Copy a file without credentials, in constant memory; the copy appears whole."""
        with source.open("rb", buffering=0) as file, new_file(target) as copy:
            for piece in self.mask_chunks(iter(lambda: file.read(CHUNK_BYTES), b"")):
                copy.write(piece)

    def _mask(self, data: bytes, cut: int, masked: int) -> tuple[bytes, int]:
        """Mask what starts before the cut; second, how far the last mask reaches behind it."""
        finds = sorted(find for needle in self._needles for find in needle.finds(data, cut))
        out = []
        end = masked
        for start, stop in finds:
            if start >= end:
                out += [data[end:start], _MASK]
            end = max(end, stop)
        out.append(data[end:cut])
        return b"".join(out), max(end - cut, 0)


@dataclass(frozen=True, slots=True)
class _Needle:
    """One credential: its bytes if they have one spelling only, else a pattern for all."""

    literal: bytes
    pattern: re.Pattern[bytes] | None
    longest: int

    def finds(self, data: bytes, cut: int) -> Iterator[tuple[int, int]]:
        """Start and end of every spelling that starts before the cut, overlapping ones too."""
        if self.pattern is None:
            start = data.find(self.literal)
            while -1 < start < cut:
                yield start, start + self.longest
                start = data.find(self.literal, start + 1)
            return
        found = self.pattern.search(data)
        while found and found.start() < cut:
            yield found.span()
            found = self.pattern.search(data, found.start() + 1)


def _counts(secret: str) -> bool:
    return len(secret) >= MIN_SECRET_CHARACTERS and not secret.strip().isdecimal()


def _needle(secret: str) -> _Needle:
    # Files that hold secrets often end with a line break, which the reader of the secret drops.
    core = secret.strip()
    text = core if len(core) >= MIN_SECRET_CHARACTERS else secret
    parts = [
        _backslashes(len(run[0])) if run[0][0] == "\\" else _character(run[0])
        for run in re.finditer(r"\\+|.", text, re.DOTALL)
    ]
    raw = text.encode("utf-8", "surrogateescape")
    longest = sum(length for _, length in parts)
    if longest == len(raw):
        return _Needle(raw, None, longest)
    return _Needle(raw, re.compile(b"".join(pattern for pattern, _ in parts), re.DOTALL), longest)


def _backslashes(count: int) -> tuple[bytes, int]:
    # JSON doubles them, JSON within JSON twice. A run in one piece leaves only one way to match.
    return rb"(?:\\{%d,%d}|(?i:(?:%%5c|\\{1,2}u005c){%d}))" % (count, 4 * count, count), 7 * count


def _character(character: str) -> tuple[bytes, int]:
    """Pattern of one character in all spellings, and the longest one's length."""
    raw = character.encode("utf-8", "surrogateescape")
    if character.isascii() and (character.isalnum() or character in "-._"):
        return re.escape(raw), 1
    percent = b"".join(b"%%%02x" % byte for byte in raw)
    units = character.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    code = b"".join(rb"\\{1,2}u%02x%02x" % pair for pair in pairs)
    # The longest first: a `%` that ends a credential must take `%25` whole.
    spellings = [b"(?i:%s|%s)" % (percent, code), rb"\\{0,3}" + re.escape(raw)]
    if character in _LETTERS:
        spellings.append(rb"\\{1,3}" + _LETTERS[character])
    if character == " ":
        spellings.append(rb"\+")
    if character == "\n":
        spellings.append(b"\r\n")
    return b"(?:%s)" % b"|".join(spellings), max(3 + len(raw), len(percent), 4 * len(units))


_LETTERS = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a kind of credential looks like.

    Attributes:
        needles: in small letters; where none of them is, no credential of the kind is.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str = MASK


# Every repetition is bounded or can't overlap with what follows it, so that the time is linear.
_SHAPES = (
    _Shape(
        ("-----begin ",),
        re.compile(
            r"-----BEGIN ([A-Z0-9]{1,12} ){0,4}PRIVATE KEY( BLOCK)?-----"
            r"(?:[A-Za-z0-9+/=\s\\:,.()]|-(?!----))*+(?:-----END [A-Z0-9 ]{1,64}-----)?"
        ),
    ),
    # User info of a URL: `user:password@`, and a long lone name, which is a token. A password
    # in a DSN may hold a raw slash; in another URL that slash ends the host's port.
    _Shape(
        ("://",),
        re.compile(r"(postgres(?:ql)?|mysql)://[^\s/:@]{0,256}:[^\s'\"<>]{1,256}@"),
        r"\1://***@",
    ),
    _Shape(
        ("://",),
        re.compile(r"://(?:[^\s/?#@:'\"<>]{0,256}:[^\s/'\"<>]{1,256}|[^\s/?#@:'\"<>]{20,256})@"),
        "://***@",
    ),
    _Shape(
        ("bearer", "basic"),
        re.compile(r"(?i)\b(bearer|basic)([ \t]{1,8})[A-Za-z0-9._~+/=-]{8,}+"),
        rf"\1\2{MASK}",
    ),
    _Shape(
        ("passw", "pwd", "secret_access_key", "session_token", "api", "x-amz-"),
        re.compile(
            r"(?i)(passw(?:or)?d|pwd|secret_access_key|session_token|api[_-]?key"
            r"|x-amz-(?:signature|security-token))"
            r"(['\"]?[ \t]{0,8}[=:][ \t]{0,8}['\"]?)[^\s'\",;&]{6,}+"
        ),
        rf"\1\2{MASK}",
    ),
    _Shape(
        ("akia", "asia", "abia", "acca"), re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b")
    ),
    _Shape(
        ("sk-", "sk_", "rk-", "rk_", "pk-", "pk_"),
        re.compile(r"\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9]{1,12}[-_]){0,3}[A-Za-z0-9_-]{16,}+"),
    ),
    _Shape(
        ("gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"\b(?:gh[opusr]_|github_pat_)[A-Za-z0-9_]{20,}+"),
    ),
    _Shape(("glpat-",), re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}+")),
    _Shape(("xox",), re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}+")),
    _Shape(("hf_", "npm_"), re.compile(r"\b(?:hf|npm)_[A-Za-z0-9]{20,}+")),
    _Shape(("dapi",), re.compile(r"\bdapi[0-9a-f]{32}\b")),
    _Shape(("aiza",), re.compile(r"\bAIza[A-Za-z0-9_-]{35}")),
    _Shape(
        ("eyj",),
        re.compile(r"\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    ),
)


_NEEDLES = tuple(dict.fromkeys(needle for shape in _SHAPES for needle in shape.needles))


def redact_patterns(text: str) -> str:
    """The text without what looks like a credential; for display only, never for evidence.

    Token shapes of common services, `Bearer` headers, private keys, passwords in URLs and settings.
    Linear in the length of the text.
    """
    for shape in _SHAPES if not text.isascii() else _shapes_told_by(text.lower()):
        text = shape.pattern.sub(shape.replacement, text)
    return text


def _shapes_told_by(text: str) -> tuple[_Shape, ...]:
    """The shapes that a text in small letters can hold; most texts hold none.

    Only for ASCII: where letter case is ignored, other letters too may count as one of these.
    """
    found = {needle for needle in _NEEDLES if needle in text}
    if not found:
        return ()
    return tuple(shape for shape in _SHAPES if not found.isdisjoint(shape.needles))
