"""A throw-away S3 server: versitygw on a folder, loopback only, random keys."""

from __future__ import annotations

import http.client
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.services.part import S3, require
from tests.services.process import HOST, ServerProcess

REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running S3 server and how its root account gets in."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str

    @property
    def environment(self) -> dict[str, str]:
        """The AWS_* variables that lead any client here."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
        }

    def client(self) -> Any:
        """A boto3 client; the caller closes it."""
        import boto3

        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
        )

    def make_bucket(self) -> S3Bucket:
        """Make an empty bucket with a new name."""
        bucket = S3Bucket(self, f"proctor-{secrets.token_hex(6)}")
        client = self.client()
        client.create_bucket(Bucket=bucket.name)
        client.close()
        return bucket


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """A bucket of one test."""

    server: S3Server
    name: str

    @property
    def url(self) -> str:
        """The bucket as the command line takes it."""
        return f"s3://{self.name}"

    def keys(self, prefix: str = "") -> list[str]:
        """Every key in the bucket, sorted."""
        client = self.server.client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        found = sorted(item["Key"] for page in pages for item in page.get("Contents", []))
        client.close()
        return found

    def drop(self) -> None:
        """Delete the bucket with all that is in it."""
        keys = self.keys()
        client = self.server.client()
        for key in keys:
            client.delete_object(Bucket=self.name, Key=key)
        client.delete_bucket(Bucket=self.name)
        client.close()


class S3Process(ServerProcess):
    """versitygw; its metadata lies beside the objects, so any file system will do."""

    name = "the S3 server"

    def __init__(self, folder: Path) -> None:
        """Nothing happens yet.

        Args:
            folder: for the objects.
        """
        super().__init__(folder)
        self._program = require(S3)
        self._access_key = secrets.token_hex(8)
        self._secret_key = secrets.token_hex(16)

    @property
    def server(self) -> S3Server:
        """How to get in; stays the same over a restart."""
        endpoint = f"http://{HOST}:{self.port}"
        return S3Server(endpoint, self._access_key, self._secret_key, REGION)

    def prepare(self) -> None:
        """Make the folders for objects and for their metadata."""
        (self.folder / "objects").mkdir()
        (self.folder / "metadata").mkdir()

    def environment(self) -> dict[str, str]:
        """The keys go in by environment: a command line can be read by everybody."""
        keys = {"ROOT_ACCESS_KEY": self._access_key, "ROOT_SECRET_KEY": self._secret_key}
        return super().environment() | keys

    def command(self) -> list[str]:
        """The gateway in the foreground."""
        listen = ["--quiet", f"--port={HOST}:{self.port}", "--health=/healthz"]
        backend = ["posix", f"--sidecar={self.folder / 'metadata'}", str(self.folder / "objects")]
        return [str(self._program), *listen, f"--region={REGION}", *backend]

    def answers(self) -> bool:
        """Whether its health page answers."""
        probe = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            probe.request("GET", "/healthz")
            return probe.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            probe.close()
