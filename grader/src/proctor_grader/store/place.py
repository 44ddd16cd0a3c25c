"""Where a store lies, read from what a user wrote. Pure; never holds a credential."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from proctor_grader.errors import UserError
from proctor_grader.store.key import split_folder

DEFAULT_STORE = ".proctor"

_MAX_PREFIX_BYTES = 200
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_OPTIONS = ("endpoint", "path_style", "region")
_CREDENTIAL = re.compile(r"(?i)key|secret|token|passw|pwd|user|credential|signature")
_FORMS = "a folder's path, file:///folder or s3://bucket/prefix"
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class S3Place:
    """A bucket, or a part of one.

    Attributes:
        bucket: its name.
        prefix: of all keys, empty or ending with `/`.
        endpoint: URL of the server; None lets the environment decide, then AWS.
        region: None lets the environment decide.
        path_style: whether the bucket's name goes into the path; None for what the endpoint calls
            for: the path with an endpoint of one's own, the host name with AWS.
    """

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None

    @property
    def url(self) -> str:
        """`s3://bucket/prefix`, without options."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def parse_place(url: str) -> Path | S3Place:
    """Read a store's place: a folder's path, `file:///folder` or `s3://bucket/prefix?options`.

    Raises:
        UserError: it is none of these, or holds a credential.
    """
    scheme = _SCHEME.match(url)
    if url.strip() == "":
        raise _invalid("the store has no place", expected=_FORMS)
    if scheme is None or not url[scheme.end() :].startswith("//"):
        if "\x00" in url:
            raise _invalid("a path can't hold a NUL character", expected=_FORMS)
        return Path(url).expanduser()
    match scheme[1].lower():
        case "file":
            return _parse_file(url)
        case "s3":
            return _parse_s3(url)
        case other:
            raise _invalid(f"'{other}' is no kind of store", expected=_FORMS)


def refuse_credentials(endpoint: str) -> None:
    """Refuse a server's URL with user info.

    Raises:
        UserError: says where credentials go.
    """
    if "@" in endpoint.partition("://")[2].partition("/")[0]:
        raise _credentials()


def _parse_file(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path:
        expected = "file:///absolute/folder; a relative folder is given as a plain path"
        raise _invalid("a file URL must name no host", expected=expected)
    path = unquote(url.partition("://")[2].removeprefix("localhost"))
    if "\x00" in path:
        raise _invalid("a path can't hold a NUL character", expected=_FORMS)
    return Path(path)


def _parse_s3(url: str) -> S3Place:
    address, _, query = url.partition("://")[2].partition("?")
    bucket, _, prefix = address.partition("/")
    if "@" in bucket or ":" in bucket:
        raise _credentials()
    if not _BUCKET.fullmatch(bucket):
        what = "the bucket's name is not valid" if bucket else "the bucket's name is missing"
        raise _invalid(what, where="s3://", expected="s3://bucket/prefix")
    where = f"s3://{bucket}"
    prefix = "".join(f"{name}/" for name in prefix.split("/") if name)
    if prefix:
        split_folder(prefix)
    if len(prefix.encode()) > _MAX_PREFIX_BYTES:
        raise _invalid(
            "the prefix is too long", where=where, expected=f"at most {_MAX_PREFIX_BYTES} bytes"
        )
    return _with_options(S3Place(bucket, prefix), parse_qsl(query, keep_blank_values=True))


def _with_options(place: S3Place, options: list[tuple[str, str]]) -> S3Place:
    found: dict[str, str] = {}
    for name, value in options:
        if name not in _OPTIONS:
            raise _unknown(place, name)
        if name in found or not value:
            state = "given twice" if name in found else "empty"
            raise _invalid(f"option '{name}' is {state}", where=place.url, expected="one value")
        found[name] = value
    endpoint = found.get("endpoint")
    if endpoint is not None:
        refuse_credentials(endpoint)
        if not _is_endpoint(endpoint):
            raise _invalid(
                "option 'endpoint' is no server's URL",
                where=place.url,
                expected="http://host:port or https://host",
            )
    path_style = found.get("path_style")
    if path_style is not None and path_style.lower() not in _BOOLEANS:
        raise _invalid(
            "option 'path_style' is neither yes nor no", where=place.url, expected="true or false"
        )
    return S3Place(
        place.bucket,
        place.prefix,
        endpoint,
        found.get("region"),
        None if path_style is None else _BOOLEANS[path_style.lower()],
    )


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0


def _unknown(place: S3Place, name: str) -> UserError:
    if _CREDENTIAL.search(name):
        return _credentials(place.url)
    close = difflib.get_close_matches(name, _OPTIONS, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    known = ", ".join(_OPTIONS)
    return _invalid(
        f"option '{name[:40]}' is not known", where=place.url, expected=f"{known}{hint}"
    )


def _credentials(where: str = "s3://") -> UserError:
    return UserError(
        "a store's URL must not hold credentials",
        where=where,
        remedy="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, instead",
        reason="InvalidStore",
    )


def _invalid(what: str, *, expected: str, where: str = "") -> UserError:
    return UserError(f"{what} (expected {expected})", where=where, reason="InvalidStore")
