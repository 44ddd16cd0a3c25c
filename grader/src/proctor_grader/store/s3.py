"""A store in a bucket of S3 or of a server that speaks its protocol.

Every object carries its sha256 as metadata, which reading checks, and a write-once object a random
mark of its writer: when a reply was lost, the mark tells whose object lies there.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import itertools
import secrets
import time
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from boto3.s3.transfer import TransferConfig, create_transfer_manager
from botocore.config import Config
from botocore.exceptions import ClientError, FlexibleChecksumError
from botocore.loaders import create_loader
from botocore.session import Session

from proctor_grader.errors import AlreadyExists, NotStored, StoreError
from proctor_grader.store.base import StoredObject
from proctor_grader.store.key import is_key, split_folder, split_key, split_prefix
from proctor_grader.store.localfile import CHUNK_BYTES, new_file
from proctor_grader.store.outage import Outage
from proctor_grader.store.place import refuse_credentials
from proctor_grader.store.probe import probe_store
from proctor_grader.store.s3fault import FAULTS, fault_of, is_outage, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

    from proctor_grader.store.place import S3Place

_T = TypeVar("_T")

_CHECK_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_READS = 5
"""Times that an object is read before its content counts as damaged: while an object is replaced,
a server that keeps metadata apart gives the new content with the old digest."""
_REREAD_SECONDS = 0.1

_MULTIPART_BYTES = 16 * 1024 * 1024
_PART_BYTES = 8 * 1024 * 1024
_PARTS_AT_ONCE = 4
_CONNECTIONS = 32
_PAGE = 1000
_DIGEST = "sha256"
_WRITER = "proctor-writer"

_CONTENT_TYPES = {  # so that a report opens in a browser straight from the bucket
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".log": "text/plain; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml",
}


class S3Store:
    """A `Store` in a bucket. Credentials come from where AWS tools take them, never from a URL."""

    def __init__(
        self,
        place: S3Place,
        *,
        retry_seconds: float,
        on_outage: Callable[[StoreError], None] | None = None,
    ) -> None:
        """Make a client; no request is sent.

        Args:
            place: bucket, prefix, server.
            retry_seconds: how long an outage is ridden out.
            on_outage: told once per outage, by the thread that met it first.

        Raises:
            UserError: endpoint, region, profile or credentials can't be used.
        """
        self._place = place
        self._endpoint = place.endpoint or "S3"
        self._retry_seconds = retry_seconds
        self._on_outage = on_outage
        self._outage = Outage(
            retry_seconds=retry_seconds, is_outage=is_outage, on_outage=self._tell
        )
        try:
            self._client = _client(place)
        except (*FAULTS, ValueError) as error:  # ValueError: an endpoint from the environment
            raise fault_of(error, place, "", self._endpoint) from error
        self._endpoint = self._client.meta.endpoint_url
        refuse_credentials(self._endpoint)
        self._seen = False  # whether the bucket has answered; a race costs one more request

    @property
    def url(self) -> str:
        """`s3://bucket/prefix`."""
        return self._place.url

    def check(self) -> None:
        """Prove that writing once, reading, listing and deleting work; waits 10 seconds at most."""
        patience = min(self._retry_seconds, _CHECK_SECONDS)
        probe_store(S3Store(self._place, retry_seconds=patience, on_outage=self._on_outage))

    def put(self, key: str, data: bytes, *, durable: bool = False) -> None:
        """Store bytes under a key, replacing what was there; always durable."""
        self._request(key, lambda: self._put(key, data, _digest(data)))

    def put_new(self, key: str, data: bytes) -> None:
        """Store bytes under a free key; a lost reply to our own success is recognised."""
        writer = secrets.token_hex(16)
        tries = itertools.count()

        def put() -> None:
            earlier = next(tries)
            try:
                self._put(key, data, _digest(data), writer=writer)
            except ClientError as error:
                if status_of(error) != HTTPStatus.PRECONDITION_FAILED:
                    raise
                earlier += error.response["ResponseMetadata"].get("RetryAttempts", 0)
                # The mark alone would not do: a server that keeps metadata apart from objects may
                # put a loser's metadata beside the winner's object.
                if not earlier or self._read_marked(key) != (writer, data):
                    raise AlreadyExists(key) from error

        self._request(key, put)

    def put_file(self, key: str, path: Path) -> str:
        """Store a file, in parts if it is large; a failed upload leaves no parts behind."""

        def put() -> str:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                if file.tell() < _MULTIPART_BYTES:
                    file.seek(0)
                    self._put(key, file, digest)
                    return digest.hex()
            with create_transfer_manager(self._client, _TRANSFER) as manager:
                names = {"bucket": self._place.bucket, "key": self._place.prefix + key}
                extra = {"Metadata": {_DIGEST: digest.hex()}, **_content_type(key)}
                manager.upload(str(path), **names, extra_args=extra).result()
            return digest.hex()

        return self._request(key, put)

    def get(self, key: str) -> bytes:
        """Read an object whole and check its digest."""
        chunks: list[bytes] = []
        self._read(key, chunks.append, chunks.clear)
        return b"".join(chunks)

    def get_file(self, key: str, path: Path) -> None:
        """Read an object into a file, which appears whole or not at all, and check its digest."""
        with new_file(path) as file:

            def restart() -> None:
                file.seek(0)
                file.truncate()

            self._read(key, file.write, restart)

    def exists(self, key: str) -> bool:
        """Whether the key is there."""

        def head() -> bool:
            try:
                self._client.head_object(**self._address(key))
            except ClientError as error:
                if not self._seen:  # this answer has no body that tells a missing bucket apart
                    self._page("", limit=1)
                if status_of(error) != HTTPStatus.NOT_FOUND:
                    raise
                return False
            return True

        return self._request(key, head)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects whose key starts with `prefix`, by key; one request per 1,000."""
        split_prefix(prefix)
        skip = len(self._place.prefix)
        return (
            StoredObject(item["Key"][skip:], item["Size"])
            for page in self._pages(prefix)
            for item in page.get("Contents", [])
            if is_key(item["Key"][skip:])
        )

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Names directly below `prefix` that have something below them; one request per 1,000."""
        split_folder(prefix)
        skip = len(self._place.prefix + prefix)
        names = (
            item["Prefix"][skip:].removesuffix("/")
            for page in self._pages(prefix, Delimiter="/")
            for item in page.get("CommonPrefixes", [])
        )
        return filter(is_key, names)

    def delete(self, key: str) -> None:
        """Remove an object; missing is success."""
        with contextlib.suppress(NotStored):  # some servers tell
            self._request(key, lambda: self._client.delete_object(**self._address(key)))

    def _address(self, key: str) -> dict[str, str]:
        return {"Bucket": self._place.bucket, "Key": self._place.prefix + key}

    def _request(self, key: str, call: Callable[[], _T], *, is_prefix: bool = False) -> _T:
        if not is_prefix:
            split_key(key)
        try:
            result = self._outage.ride_out(call)
        except FAULTS as error:
            raise fault_of(error, self._place, key, self._endpoint) from error
        self._seen = True
        return result

    def _tell(self, error: BaseException) -> None:
        fault = fault_of(error, self._place, "", self._endpoint)
        if self._on_outage and isinstance(fault, StoreError):
            self._on_outage(fault)

    def _put(
        self, key: str, body: bytes | IO[bytes], digest: bytes, *, writer: str | None = None
    ) -> None:
        metadata = {_DIGEST: digest.hex()}
        condition = {}
        if writer is not None:
            metadata[_WRITER] = writer
            condition["IfNoneMatch"] = "*"
        self._client.put_object(
            **self._address(key),
            Body=body,
            ChecksumSHA256=base64.b64encode(digest).decode(),
            Metadata=metadata,
            **condition,
            **_content_type(key),
        )

    def _read_marked(self, key: str) -> tuple[str | None, bytes]:
        """An object's writer and content; no writer when it is gone by now."""
        try:
            answer = self._client.get_object(**self._address(key))
        except ClientError as error:
            if status_of(error) == HTTPStatus.NOT_FOUND:
                return None, b""
            raise
        with contextlib.closing(answer["Body"]) as body:
            return answer["Metadata"].get(_WRITER), body.read()

    def _read(
        self, key: str, write: Callable[[bytes], object], restart: Callable[[], object]
    ) -> None:
        def read() -> bool:
            restart()
            answer = self._client.get_object(**self._address(key), ChecksumMode="ENABLED")
            digest = hashlib.sha256()
            with contextlib.closing(answer["Body"]) as body:
                try:
                    while chunk := body.read(CHUNK_BYTES):
                        digest.update(chunk)
                        write(chunk)
                except FlexibleChecksumError:
                    return False
            found = digest.hexdigest()
            expected: str = answer["Metadata"].get(_DIGEST, found)
            return expected == found

        for number in range(_READS):
            time.sleep(number * _REREAD_SECONDS)
            if self._request(key, read):
                return
        raise StoreError(
            "what is stored differs from its digest",
            where=f"{self.url}/{key}",
            remedy="restore the object from a backup",
            reason="StoreDamaged",
        )

    def _pages(self, prefix: str, **options: Any) -> Iterator[dict[str, Any]]:
        while True:
            call = functools.partial(self._page, prefix, **options)
            page = self._request(prefix, call, is_prefix=True)
            yield page
            if not page.get("IsTruncated"):
                return
            options["ContinuationToken"] = page["NextContinuationToken"]

    def _page(self, prefix: str, *, limit: int = _PAGE, **options: Any) -> dict[str, Any]:
        page: dict[str, Any] = self._client.list_objects_v2(
            Bucket=self._place.bucket,
            Prefix=self._place.prefix + prefix,
            MaxKeys=limit,
            **options,
        )
        return page


_LOADER = create_loader()
_TRANSFER = TransferConfig(
    multipart_threshold=_MULTIPART_BYTES,
    multipart_chunksize=_PART_BYTES,
    max_concurrency=_PARTS_AT_ONCE,
    preferred_transfer_client="classic",  # the other one wants a client of its own
)


def _client(place: S3Place) -> Any:
    styles = {None: "auto", True: "path", False: "virtual"}
    config = Config(
        signature_version="s3v4",  # the default for presigned URLs is older, servers refuse it
        s3={"addressing_style": styles[place.path_style]},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=_CONNECTIONS,
    )
    # A session of its own, since only clients may be shared between threads; the descriptions of
    # the API are shared, which makes every store after the first cost 0.03 s instead of 0.15 s.
    session = Session()
    session.register_component("data_loader", _LOADER)
    return session.create_client(
        "s3", endpoint_url=place.endpoint, region_name=place.region, config=config
    )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _content_type(key: str) -> dict[str, str]:
    found = _CONTENT_TYPES.get(PurePosixPath(key).suffix)
    return {"ContentType": found} if found else {}
