from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proctor_grader.errors import UserError
from proctor_grader.store.directory import DirectoryStore
from proctor_grader.store.table import open_store


def test_default_is_a_folder_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store()
    assert isinstance(store, DirectoryStore)
    assert store.url == str(tmp_path / ".proctor")
    assert list(tmp_path.iterdir()) == []


def test_bucket_is_opened_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    assert open_store("s3://bucket/a?endpoint=http://127.0.0.1:9").url == "s3://bucket/a"


def test_credentials_are_refused() -> None:
    with pytest.raises(UserError):
        open_store("s3://me:secret@bucket")


def test_folder_store_does_not_import_the_s3_client() -> None:
    program = (
        "import sys; from proctor_grader.store.table import open_store; open_store('x');"
        "print(sorted({'boto3', 'botocore', 'tenacity'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
