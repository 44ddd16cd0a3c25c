"""Keeping credentials out of what is stored and out of what is shown. Pure but for `mask_file`.

Stored evidence loses known credentials only, since grading reads it; token shapes are for display.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from proctor_grader.store.localfile import CHUNK_BYTES, new_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MIN_SECRET_CHARACTERS = 12
MASK = "***"
_MASK = MASK.encode()


class Masker:
    """Replaces known credentials by `***`, in every spelling that logs and URLs give them.

    Overlapping finds become one mask, so nothing of a credential is left beside another. Values
    below 12 characters or of digits only are left alone: an answer may hold them by chance.

    Source: design.md, section 7.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {
            spelling.encode("utf-8", "surrogateescape")
            for secret in secrets
            for spelling in _spellings(secret)
        }
        self._needles = tuple(sorted(spellings, key=lambda needle: (-len(needle), needle)))

    def __repr__(self) -> str:
        return f"Masker({len(self._needles)} spellings)"

    def mask_bytes(self, data: bytes) -> bytes:
        """The data without credentials."""
        if not any(needle in data for needle in self._needles):
            return data
        return b"".join(self.mask_chunks((data,)))

    def mask_text(self, text: str) -> str:
        """The text without credentials."""
        data = text.encode("utf-8", "surrogatepass")
        masked = self.mask_bytes(data)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def mask_chunks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """A stream without credentials, also where one is cut by a chunk's border.

        Holds two chunks and the longest credential in memory.
        """
        if not self._needles:
            yield from chunks
            return
        overlap = len(self._needles[0]) - 1
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
        out = []
        end = masked
        for start, stop in self._finds(data, cut):
            if start >= end:
                out += [data[end:start], _MASK]
            end = max(end, stop)
        out.append(data[end:cut])
        return b"".join(out), max(end - cut, 0)

    def _finds(self, data: bytes, cut: int) -> list[tuple[int, int]]:
        found = []
        for needle in self._needles:
            start = data.find(needle)
            while -1 < start < cut:
                found.append((start, start + len(needle)))
                start = data.find(needle, start + 1)
        return sorted(found)


def _spellings(secret: str) -> set[str]:
    # Files that hold secrets often end with a line break, which the reader of the secret drops.
    plain = {
        text
        for text in (secret, secret.strip())
        if len(text) >= MIN_SECRET_CHARACTERS and not text.isdecimal()
    }
    quoted: set[str] = set()
    for text in plain:
        raw = text.encode("utf-8", "surrogateescape")
        # "" is what a DSN needs, "/" Python's default, the others JavaScript's and Go's.
        for safe in ("", "/", "!'()*", "!'()*;,/?:@&=+$#", "$&+,/:;=@"):
            quoted |= {quote(raw, safe=safe), quote_plus(raw, safe=safe)}
    quoted |= {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), text) for text in quoted}
    # Events hold JSON within JSON: a tool's result inside a transcript's line.
    once = {spelling for text in plain for spelling in _json_spellings(text)}
    twice = {spelling for text in once for spelling in _json_spellings(text)}
    return plain | quoted | once | twice


def _json_spellings(text: str) -> set[str]:
    spellings = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    spellings |= {spelling.replace("/", "\\/") for spelling in spellings}
    for sign in "<>&":  # Go's encoder
        code = f"\\u{ord(sign):04x}"
        spellings |= {spelling.replace(sign, code) for spelling in spellings}
    return spellings


# Every repetition is bounded or can't overlap with what follows it, so that the time is linear.
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (
            r"-----BEGIN ([A-Z0-9]{1,12} ){0,4}PRIVATE KEY( BLOCK)?-----"
            r"(?:[A-Za-z0-9+/=\s\\:,.()]|-(?!----))*+(?:-----END [A-Z0-9 ]{1,64}-----)?",
            MASK,
        ),
        # User info of a URL: `user:password@`, and a long lone name, which is a token.
        (r"://(?:[^\s/?#@:'\"<>]{0,256}:[^\s/'\"<>]{1,256}|[^\s/?#@:'\"<>]{20,256})@", "://***@"),
        (r"(?i)\b(bearer|basic)([ \t]{1,8})[A-Za-z0-9._~+/=-]{8,}+", rf"\1\2{MASK}"),
        (
            r"(?i)\b((?:pg|mysql_|db_?)?(?:password|passwd|pwd)|aws_secret_access_key"
            r"|aws_session_token|api[_-]?key|x-amz-signature|x-amz-security-token)"
            r"(['\"]?[ \t]{0,8}[=:][ \t]{0,8}['\"]?)[^\s'\",;&]{6,}+",
            rf"\1\2{MASK}",
        ),
        (r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", MASK),
        (r"\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9]{1,12}[-_]){0,3}[A-Za-z0-9_-]{16,}+", MASK),
        (r"\b(?:gh[opusr]_|github_pat_)[A-Za-z0-9_]{20,}+", MASK),
        (r"\bglpat-[A-Za-z0-9_-]{16,}+", MASK),
        (r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}+", MASK),
        (r"\b(?:hf|npm)_[A-Za-z0-9]{20,}+", MASK),
        (r"\bdapi[0-9a-f]{32}\b", MASK),
        (r"\bAIza[A-Za-z0-9_-]{35}", MASK),
        (r"\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+", MASK),
    )
)


def redact_patterns(text: str) -> str:
    """The text without what looks like a credential; for display only, never for evidence.

    Token shapes of common services, `Bearer` headers, private keys, passwords in URLs and settings.
    Linear in the length of the text.
    """
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return text
