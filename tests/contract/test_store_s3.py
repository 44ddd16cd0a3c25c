"""A bucket is a store, also when the server goes away, loses replies or damages what it sends."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor_grader.errors import AlreadyExists, NotStored, StoreError, StoreFull, UserError
from proctor_grader.store.base import Store
from proctor_grader.store.table import open_store
from tests.contract.store import SharedStoreContract
from tests.make.s3proxy import CUT, DAMAGE, LOSE_REPLY, REFUSE, Answer, S3Proxy, s3_proxy
from tests.services.s3 import S3Bucket, S3Process, S3Server

CONFLICT = Answer(409, "ConditionalRequestConflict")
SLOW_DOWN = Answer(503, "SlowDown")
PARTS = 20 * 1024 * 1024


@pytest.fixture
def bucket(s3_bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    enter(monkeypatch, s3_bucket.server.environment)
    return s3_bucket


@pytest.fixture
def url(bucket: S3Bucket) -> str:
    return f"{bucket.url}/some/prefix"


@pytest.fixture
def store(url: str) -> Store:
    return open_store(url, retry_seconds=10)


@pytest.fixture
def proxy(bucket: S3Bucket) -> Iterator[S3Proxy]:
    with s3_proxy(bucket.server.endpoint) as running:
        yield running


def enter(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    nowhere = {"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"}
    for name, value in (environment | nowhere | {"AWS_EC2_METADATA_DISABLED": "true"}).items():
        monkeypatch.setenv(name, value)


def behind(proxy: S3Proxy, bucket: S3Bucket, **options: Any) -> Store:
    """The bucket's store as seen through a proxy."""
    return open_store(f"{bucket.url}?endpoint={proxy.endpoint}", **{"retry_seconds": 10, **options})


@pytest.fixture(scope="module")
def shared_bucket(s3_server: S3Server) -> Iterator[S3Bucket]:
    """One bucket for the whole contract: every test has a prefix of its own."""
    bucket = s3_server.make_bucket()
    yield bucket
    client = s3_server.client()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket.name):
        found = [{"Key": item["Key"]} for item in page.get("Contents", [])]
        if found:
            client.delete_objects(Bucket=bucket.name, Delete={"Objects": found})
    client.close()
    bucket.drop()


class TestS3Store(SharedStoreContract):
    @pytest.fixture
    def url(self, shared_bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> str:
        enter(monkeypatch, shared_bucket.server.environment)
        return f"{shared_bucket.url}/{secrets.token_hex(8)}"


def test_prefix_parts_stores_in_one_bucket(bucket: S3Bucket) -> None:
    first, second = (open_store(f"{bucket.url}/{name}/") for name in ("a", "ab"))
    first.put("x/1", b"1")
    second.put("x/2", b"2")
    assert [found.key for found in first.list("")] == ["x/1"]
    assert [found.key for found in first.list("x/")] == ["x/1"]
    assert list(second.list_folders("")) == ["x"]
    assert bucket.keys() == ["a/x/1", "ab/x/2"]
    assert (first.url, second.url) == (f"{bucket.url}/a", f"{bucket.url}/ab")


def test_reports_open_in_a_browser(bucket: S3Bucket, store: Store, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"<p>")
    store.put_file("report/index.html", tmp_path / "page")
    client = bucket.server.client()
    head = client.head_object(Bucket=bucket.name, Key="some/prefix/report/index.html")
    client.close()
    assert head["ContentType"] == "text/html; charset=utf-8"


def test_object_that_somebody_else_stored_can_be_read(bucket: S3Bucket, store: Store) -> None:
    client = bucket.server.client()
    client.put_object(Bucket=bucket.name, Key="some/prefix/foreign", Body=b"1")
    client.put_object(Bucket=bucket.name, Key="some/prefix/folder/", Body=b"")
    client.close()
    assert store.get("foreign") == b"1"
    assert [found.key for found in store.list("")] == ["foreign"]


def test_damaged_object_is_told(bucket: S3Bucket, store: Store, tmp_path: Path) -> None:
    client = bucket.server.client()
    wrong = {"sha256": hashlib.sha256(b"right").hexdigest()}
    client.put_object(Bucket=bucket.name, Key="some/prefix/a", Body=b"wrong", Metadata=wrong)
    client.close()
    for read in (lambda: store.get("a"), lambda: store.get_file("a", tmp_path / "a")):
        with pytest.raises(StoreError) as damaged:
            read()
        assert damaged.value.reason == "StoreDamaged"
    assert os.listdir(tmp_path) == []


# What a network does to single requests


@pytest.mark.parametrize(
    "fates",
    [
        pytest.param([LOSE_REPLY], id="the-reply-is-lost"),
        pytest.param([LOSE_REPLY] * 2, id="the-reply-is-lost-beyond-the-clients-own-retries"),
        pytest.param([REFUSE] * 3, id="the-connection-is-refused"),
        pytest.param([CONFLICT], id="two-writers-conflict"),
        pytest.param([CONFLICT, LOSE_REPLY, CONFLICT], id="conflicts-and-a-lost-reply"),
        pytest.param([SLOW_DOWN] * 3, id="the-server-is-busy"),
    ],
)
def test_put_new_is_ours_in_the_end(bucket: S3Bucket, proxy: S3Proxy, fates: list[Any]) -> None:
    store = behind(proxy, bucket)
    proxy.strike("PUT", *fates)
    store.put_new("a", b"ours")
    assert proxy.count("PUT") > len(fates)
    assert open_store(bucket.url).get("a") == b"ours"
    with pytest.raises(AlreadyExists):
        store.put_new("a", b"ours")


def test_anothers_equal_object_is_not_taken_for_ours(bucket: S3Bucket, proxy: S3Proxy) -> None:
    store = behind(proxy, bucket)
    open_store(bucket.url).put_new("a", b"same")
    proxy.strike("PUT", REFUSE, CONFLICT)
    with pytest.raises(AlreadyExists):
        store.put_new("a", b"same")


@pytest.mark.parametrize("fate", [DAMAGE, CUT, REFUSE, SLOW_DOWN])
def test_reading_is_repeated_until_it_is_right(
    bucket: S3Bucket, proxy: S3Proxy, fate: Any, tmp_path: Path
) -> None:
    store = behind(proxy, bucket)
    data = os.urandom(3_000_000)
    store.put("a", data)
    proxy.strike("GET", fate, fate)
    assert store.get("a") == data
    proxy.strike("GET", fate, fate)
    store.get_file("a", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data


@pytest.mark.parametrize("fate", [REFUSE, LOSE_REPLY, SLOW_DOWN])
def test_list_exists_and_delete_are_repeated(bucket: S3Bucket, proxy: S3Proxy, fate: Any) -> None:
    store = behind(proxy, bucket)
    store.put("a/b", b"")
    proxy.strike("GET", fate, fate, fate)
    assert [found.key for found in store.list("")] == ["a/b"]
    proxy.strike("HEAD", fate, fate, fate)
    assert store.exists("a/b")
    proxy.strike("DELETE", fate, fate, fate)
    store.delete("a/b")
    assert bucket.keys() == []


def test_lost_parts_are_sent_again(bucket: S3Bucket, proxy: S3Proxy, tmp_path: Path) -> None:
    store = behind(proxy, bucket)
    (tmp_path / "large").write_bytes(os.urandom(PARTS))
    proxy.strike("PUT", LOSE_REPLY, REFUSE, SLOW_DOWN, query="partNumber=")
    digest = store.put_file("large", tmp_path / "large")
    assert hashlib.sha256(open_store(bucket.url).get("large")).hexdigest() == digest
    assert uploads(bucket) == []


def test_failed_upload_leaves_no_parts(bucket: S3Bucket, proxy: S3Proxy, tmp_path: Path) -> None:
    store = behind(proxy, bucket, retry_seconds=0)
    (tmp_path / "large").write_bytes(os.urandom(PARTS))
    proxy.rule = lambda request: SLOW_DOWN if "partNumber=2" in request.path else None
    with pytest.raises(StoreError):
        store.put_file("large", tmp_path / "large")
    assert proxy.count("PUT", "partNumber=1") == 1
    assert uploads(bucket) == []
    assert bucket.keys() == []


def test_full_store_is_told_at_once(bucket: S3Bucket, proxy: S3Proxy) -> None:
    store = behind(proxy, bucket)
    proxy.rule = lambda _: Answer(507, "XMinioStorageFull")
    with pytest.raises(StoreFull) as full:
        store.put("a", b"")
    assert full.value.where == f"{bucket.url}/a"


def test_server_that_ignores_the_condition_fails_the_check(
    bucket: S3Bucket, proxy: S3Proxy
) -> None:
    proxy.strike("PUT", None, Answer(200, ""))
    with pytest.raises(UserError, match="overwrites what must be written once"):
        behind(proxy, bucket).check()
    assert bucket.keys() == []


def uploads(bucket: S3Bucket) -> list[str]:
    client = bucket.server.client()
    found = client.list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
    client.close()
    return [upload["Key"] for upload in found]


# A server that is away


def test_outage_is_ridden_out_and_told_once(
    private_s3: Callable[[], S3Process], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = private_s3()
    enter(monkeypatch, process.server.environment)
    bucket = process.server.make_bucket()
    away, told = threading.Event(), list[StoreError]()

    def tell(error: StoreError) -> None:
        told.append(error)
        away.set()

    store = open_store(bucket.url, retry_seconds=60, on_outage=tell)
    data = os.urandom(PARTS)
    (tmp_path / "large").write_bytes(data)
    done, go_on = list[str](), threading.Event()

    def write() -> None:
        number = 0
        while not go_on.is_set() or number < 3:
            store.put_file(f"file/{number}", tmp_path / "large")
            store.put_new(f"marker/{number}", str(number).encode())
            done.append(f"marker/{number}")
            number += 1

    threads = [threading.Thread(target=write)]
    threads[0].start()
    while not done:
        time.sleep(0.01)
    process.kill()
    assert away.wait(30)
    process.start()
    seen = len(done)
    while len(done) < seen + 2 and threads[0].is_alive():
        time.sleep(0.01)
    go_on.set()
    threads[0].join(60)
    assert len(told) == 1
    assert process.server.endpoint in str(told[0])
    assert len(done) >= 3
    for key in done:
        assert store.get(key) == key.removeprefix("marker/").encode()
        assert store.get(key.replace("marker", "file")) == data


def test_outage_that_lasts_fails_and_later_calls_do_not_wait_again(
    private_s3: Callable[[], S3Process], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = private_s3()
    enter(monkeypatch, process.server.environment)
    store = open_store(process.server.make_bucket().url, retry_seconds=2)
    store.put("a", b"1")
    process.stop()
    began = time.monotonic()
    with pytest.raises(StoreError) as first:
        store.put_new("b", b"")
    waited = time.monotonic() - began
    assert first.value.reason == "StoreUnavailable"
    assert 1.5 < waited < 15
    began = time.monotonic()
    for call in (
        lambda: store.get("a"),
        lambda: store.exists("a"),
        lambda: list(store.list("")),
        lambda: store.get_file("a", tmp_path / "copy"),
    ):
        with pytest.raises(StoreError):
            call()
    assert time.monotonic() - began < 4 * waited
    assert os.listdir(tmp_path) == []
    process.start()
    assert store.get("a") == b"1"


# A user who has to act


def everything(store: Store) -> list[Callable[[], object]]:
    return [
        store.check,
        lambda: store.put("a", b""),
        lambda: store.put_new("a", b""),
        lambda: store.get("a"),
        lambda: store.exists("a"),
        lambda: list(store.list("")),
        lambda: list(store.list_folders("")),
        lambda: store.delete("a"),
    ]


@pytest.mark.parametrize(
    ("environment", "url", "words"),
    [
        pytest.param({}, "s3://no-such-bucket", "does not exist", id="a-missing-bucket"),
        pytest.param(
            {"AWS_ACCESS_KEY_ID": "AKIAWRONGWRONGWRONG"},
            "",
            "AWS_ACCESS_KEY_ID",
            id="a-wrong-access-key",
        ),
        pytest.param(
            {"AWS_SECRET_ACCESS_KEY": "wrong-secret-wrong-secret"},
            "",
            "SignatureDoesNotMatch",
            id="a-wrong-secret-key",
        ),
        pytest.param(
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
            "",
            "no usable credentials",
            id="no-credentials",
        ),
        pytest.param({}, "s3://NoSuchBucket..x", "InvalidBucketName", id="an-impossible-bucket"),
    ],
)
def test_every_operation_says_what_the_user_must_do(
    bucket: S3Bucket,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    url: str,
    words: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        if not value:
            monkeypatch.delenv(name)
    url = url or bucket.url
    for call in everything(open_store(url, retry_seconds=0)):
        with pytest.raises(UserError, match=words) as refused:
            call()
        assert refused.value.where.startswith(url)
        assert refused.value.remedy
        assert_no_secret(str(refused.value), bucket)


def assert_no_secret(text: str, bucket: S3Bucket) -> None:
    secrets = (bucket.server.access_key, bucket.server.secret_key, "WRONGWRONG", "wrong-secret")
    assert not [secret for secret in secrets if secret in text]


def test_profile_that_does_not_exist_is_told(
    bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(UserError, match="ProfileNotFound"):
        open_store(bucket.url)


@pytest.mark.parametrize("endpoint", ["http://user:topsecretword@127.0.0.1:9", "nonsense"])
def test_bad_endpoint_in_the_environment_is_told(
    bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    with pytest.raises(UserError) as refused:
        open_store(bucket.url)
    assert "topsecretword" not in str(refused.value)


def test_permission_that_is_missing_is_named(bucket: S3Bucket, proxy: S3Proxy) -> None:
    store = behind(proxy, bucket)
    for method, permission in (
        ("PUT", "s3:PutObject"),
        ("GET", "s3:GetObject"),
        ("DELETE", "s3:DeleteObject"),
    ):
        proxy.strike(method, *[Answer(403, "AccessDenied")] * 9)
        with pytest.raises(UserError, match=permission):
            store.check()


def test_missing_object_is_no_missing_bucket(bucket: S3Bucket) -> None:
    store = open_store(bucket.url)
    assert not store.exists("a")
    with pytest.raises(NotStored):
        store.get("a")
