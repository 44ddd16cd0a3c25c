from __future__ import annotations

from pathlib import Path

import pytest

from proctor_grader.errors import UserError
from proctor_grader.store.place import S3Place, parse_place


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (".proctor", ".proctor"),
        ("a/../b", "a/../b"),
        ("/srv/store", "/srv/store"),
        ("file:///srv/a%20store", "/srv/a store"),
        ("file:///srv/a?b#c", "/srv/a?b#c"),
        ("FILE://localhost/srv", "/srv"),
        ("odd:name", "odd:name"),
        ("s3:/x", "s3:/x"),
        ("what?region=x", "what?region=x"),
    ],
)
def test_path_is_a_folder(url: str, path: str) -> None:
    assert parse_place(url) == Path(path)


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_place("~/store") == Path("/home/me/store")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://bucket", S3Place("bucket")),
        ("s3://bucket/", S3Place("bucket")),
        ("S3://bucket/a//b/", S3Place("bucket", "a/b/")),
        (
            "s3://bucket/a?endpoint=http://127.0.0.1:9000&region=eu&path_style=true",
            S3Place("bucket", "a/", "http://127.0.0.1:9000", "eu", True),
        ),
        (
            "s3://bucket?path_style=No&endpoint=https%3A%2F%2Fs3.example.com%2Fx",
            S3Place("bucket", "", "https://s3.example.com/x", None, False),
        ),
    ],
)
def test_bucket_and_options_are_read(url: str, place: S3Place) -> None:
    assert parse_place(url) == place


def test_url_of_a_place_has_no_options() -> None:
    assert S3Place("bucket", "a/b/", "http://h:1").url == "s3://bucket/a/b"
    assert S3Place("bucket").url == "s3://bucket"


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIASECRETSECRET:topsecretword@bucket/a",
        "s3://AKIASECRETSECRET@bucket",
        "s3://AKIASECRETSECRET:topsecret/word@bucket",
        "s3://bucket?endpoint=http://me:topsecretword@127.0.0.1:9000",
        "s3://bucket?secret_key=topsecretword",
        "s3://bucket?aws_access_key_id=topsecretword",
        "s3://bucket/a?region=x&token=topsecretword",
    ],
)
def test_credentials_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UserError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") as refused:
        parse_place(url)
    assert "topsecret" not in str(refused.value)
    assert "SECRETSECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "no place"),
        ("  ", "no place"),
        ("a\x00b", "NUL"),
        ("file:///a%00b", "NUL"),
        ("file://host/a", "must name no host"),
        ("file://", "must name no host"),
        ("gs://bucket", "'gs' is no kind of store"),
        ("postgresql://me:topsecretword@host/db", "'postgresql' is no kind of store"),
        ("s3://", "the bucket's name is missing"),
        ("s3:///a", "the bucket's name is missing"),
        ("s3://a", "the bucket's name is not valid"),
        ("s3://bucket name/a", "the bucket's name is not valid"),
        ("s3://bucket/../a", "no valid key"),
        ("s3://bucket/" + "a" * 201, "the prefix is too long"),
        ("s3://bucket?regio=x", "did you mean 'region'"),
        ("s3://bucket?x=1", "option 'x' is not known"),
        ("s3://bucket?region=", "option 'region' is empty"),
        ("s3://bucket?region=a&region=b", "option 'region' is given twice"),
        ("s3://bucket?endpoint=localhost:9000", "no server's URL"),
        ("s3://bucket?endpoint=http://", "no server's URL"),
        ("s3://bucket?endpoint=http://h:port", "no server's URL"),
        ("s3://bucket?path_style=maybe", "neither yes nor no"),
    ],
)
def test_invalid_place_says_what_is_wrong(url: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        parse_place(url)
    assert "topsecretword" not in str(refused.value)
