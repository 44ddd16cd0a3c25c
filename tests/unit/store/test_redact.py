from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from proctor_grader.store.redact import Masker, redact_patterns

PLAIN = "correcthorse42"
ODD = "p@ss/w\"o\\rd<&> é'\n😀%"

BEGIN = "-----BEGIN "
"""Apart from the rest, or the search for private keys would find this file."""


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("elevenchars", id="shorter-than-12-characters"),
        pytest.param("123456789012345", id="digits-only"),
        pytest.param("123456789012\n", id="digits-and-a-line-break"),
        pytest.param("", id="empty"),
    ],
)
def test_value_that_may_stand_in_an_answer_is_left_alone(secret: str) -> None:
    text = f"the answer is {secret}."
    assert Masker([secret]).mask_text(text) == text


@pytest.mark.parametrize("secret", ["twelve-chars", "1234567890123x", "ünïcödé-ünïcödé"])
def test_value_of_12_characters_is_masked(secret: str) -> None:
    assert Masker([secret]).mask_text(f"<{secret}>{secret}") == "<***>***"


@pytest.mark.parametrize(
    "spell",
    [
        pytest.param(lambda secret: secret, id="as-it-is"),
        pytest.param(lambda secret: quote(secret, safe=""), id="in-a-dsn"),
        pytest.param(quote, id="in-a-path"),
        pytest.param(quote_plus, id="in-a-form"),
        pytest.param(lambda secret: quote(secret, safe="").lower(), id="with-small-hex-digits"),
        pytest.param(lambda secret: quote(secret, safe="!'()*@:&"), id="half-quoted"),
        pytest.param(lambda secret: json.dumps(secret)[1:-1], id="in-json"),
        pytest.param(
            lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1], id="in-utf8-json"
        ),
        pytest.param(lambda secret: json.dumps(json.dumps(secret))[3:-3], id="in-json-in-json"),
        pytest.param(
            lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"), id="in-json-of-php"
        ),
        pytest.param(
            lambda secret: (
                json.dumps(secret)[1:-1]
                .replace("<", "\\u003c")
                .replace(">", "\\u003E")
                .replace("&", "\\u0026")
            ),
            id="in-json-of-go",
        ),
        pytest.param(lambda secret: secret.replace("\n", "\r\n"), id="in-a-windows-file"),
    ],
)
def test_every_spelling_is_masked(spell: object) -> None:
    assert callable(spell)
    text = f'{{"url": "x{spell(ODD)}y"}}'
    assert Masker([ODD]).mask_text(text) == '{"url": "x***y"}'


def test_secret_of_backslashes_does_not_take_for_ever() -> None:
    masker = Masker(["\\" * 20 + "end", '\\"' * 10])
    began = time.process_time()
    masker.mask_bytes(b"\\" * 200_000)
    assert time.process_time() - began < 2
    assert masker.mask_bytes(b"a" + b"\\" * 20 + b"end") == b"a***"
    assert masker.mask_bytes(b"a" + b"\\" * 40 + b"end") == b"a***"


def test_secret_is_masked_without_the_line_break_of_its_file() -> None:
    assert Masker([f"{PLAIN}\n"]).mask_text(f"key={PLAIN};") == "key=***;"


def test_longer_secret_wins_and_overlaps_become_one_mask() -> None:
    masker = Masker(["abcdefghijkl", "abcdefghijklmnop", "lmnopqrstuvwxyz"])
    assert masker.mask_text("_abcdefghijklmnop_") == "_***_"
    assert masker.mask_text("_abcdefghijklmnopqrstuvwxyz_") == "_***_"
    assert masker.mask_text("_abcdefghijkllmnopqrstuvwxyz_") == "_******_"


def test_bytes_that_are_no_text_are_kept() -> None:
    data = bytes(range(256)) * 3
    assert Masker([PLAIN]).mask_bytes(data) == data
    assert Masker([PLAIN]).mask_bytes(b"\xff" + PLAIN.encode() + b"\xfe") == b"\xff***\xfe"
    assert Masker([PLAIN]).mask_text("\ud800" + PLAIN) == "\ud800***"
    assert Masker([]).mask_bytes(data) == data


@pytest.mark.parametrize("size", [1, 2, 5, 13, 14, 15, 1000])
def test_secret_is_masked_across_the_borders_of_chunks(size: int) -> None:
    secrets = [PLAIN, "horse42horse42horse42", ODD, "aaaaaaaaaaaa"]
    text = (
        f"{PLAIN}horse42horse42 a {PLAIN}{PLAIN} {quote(ODD)}x{json.dumps(ODD)} {'a' * 50}.{PLAIN}"
    )
    data = text.encode()
    masker = Masker(secrets)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    streamed = b"".join(masker.mask_chunks(chunks))
    assert streamed == b'*** a ****** ***x"***" ***.***'
    assert masker.mask_bytes(data) == streamed


@pytest.mark.parametrize("cut", range(1, 16))
def test_single_secret_is_masked_wherever_it_is_cut(cut: int) -> None:
    data = f"-{PLAIN}-".encode()
    pieces = list(Masker([PLAIN]).mask_chunks([data[:cut], data[cut:]]))
    assert b"".join(pieces) == b"-***-"


def test_file_is_masked_in_constant_memory(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    block = b"x" * 1_000_003 + PLAIN.encode()
    with source.open("wb") as file:
        for _ in range(40):
            file.write(block)
    tracemalloc.start()
    Masker([PLAIN]).mask_file(source, target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert target.read_bytes() == (b"x" * 1_000_003 + b"***") * 40
    assert peak < 12_000_000


def test_masker_does_not_show_its_secrets() -> None:
    assert PLAIN not in repr(Masker([PLAIN]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id AKIAIOSFODNN7EXAMPLE.", "id ***."),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = ***"),
        ("key sk-ant-api03-abc_DEF-ghijklmnop", "key ***"),
        ("sk-abcdefghijklmnopqrstuvwx", "***"),
        ("sk_live_abcdefghijklmnopqrstuvwx", "***"),
        ("ghp_" + "a" * 36, "***"),
        ("github_pat_" + "1" * 30, "***"),
        ("glpat-abcdefghijklmnopqrst", "***"),
        ("xoxb-1234567890-abcdef", "***"),
        ("hf_" + "a" * 34, "***"),
        ("dapi" + "0" * 32, "***"),
        ("AIza" + "b" * 35, "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123", "***"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic ***"),
        ("postgresql://me:pw@host/db", "postgresql://***@host/db"),
        ("postgresql://me:p@s/s@host/db", "postgresql://***@host/db"),
        ("snowflake://me:p%40ss@account/db", "snowflake://***@account/db"),
        ("https://abcdefghijklmnopqrstuvwxyz@github.com/a", "https://***@github.com/a"),
        ("host=h password=hunter22 user=u", "host=h password=*** user=u"),
        ('{"api_key": "abcdef123456"}', '{"api_key": "***"}'),
        ("GET /o?X-Amz-Signature=abcdef0123&x=1", "GET /o?X-Amz-Signature=***&x=1"),
        (
            f"a\n{BEGIN}RSA PRIVATE KEY-----\nMIIE+/=\n-----END RSA PRIVATE KEY-----\nb",
            "a\n***\nb",
        ),
        (f"{BEGIN}PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n!", "***\\n!"),
        (f"{BEGIN}OPENSSH PRIVATE KEY-----\nb3BlbnNz", "***"),
    ],
)
def test_credential_is_not_shown(text: str, shown: str) -> None:
    assert redact_patterns(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the risk-adjusted return on a task-list, sk-learn included",
        "http://localhost:8080/a@b and me@example.com at 12:30@noon",
        "SELECT password FROM users WHERE token = 5",
        "https://me@example.com/",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "bearer of bad news",
    ],
)
def test_ordinary_text_is_shown(text: str) -> None:
    assert redact_patterns(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "-", "a-", "_", " ", "\n", "@", ":", "://", "://a:", "://a:@", "postgres://a:"),
        *("eyJ", "eyJaaaaaaaa.", "sk-", "sk-a-", "pk_a_", "bearer ", "Basic  ", "password= "),
        *(
            "-----BEGIN ",
            "-----BEGIN A ",
            f"{BEGIN}PRIVATE KEY-----",
            "-----",
            "api_key",
            "ghp_",
        ),
        *(f"{BEGIN}PRIVATE KEY-----a-", "-----END ", "xox", "AKIA", "a.b-", "://" + "a" * 255),
    ],
)
def test_redaction_is_linear_on_hostile_text(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        began = time.process_time()
        redact_patterns(text)
        return time.process_time() - began

    # Quadratic work would take minutes here.
    assert seconds(300_000) < 3
