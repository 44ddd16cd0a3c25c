"""A folder is a store, whatever happens to its processes and whatever else lies in it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor_grader.errors import NotStored, UserError
from proctor_grader.store.directory import DirectoryStore
from tests.contract.store import SharedStoreContract, run_process, start_process

WRITE_FROM_PIPE = """
import sys
from pathlib import Path
from proctor_grader.store.table import open_store
open_store(sys.argv[1]).put_file(sys.argv[2], Path(sys.argv[3]))
"""
WRITE_FOREVER = """
import sys
from proctor_grader.store.table import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
while True:
    for value in (b"A", b"B"):
        store.put("marker", value * 1_000_000, durable=True)
        store.put(f"new/{value.decode()}", value * 1_000_000)
        store.delete(f"new/{value.decode()}")
"""


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "deep" / "root"


@pytest.fixture
def store(root: Path) -> DirectoryStore:
    return DirectoryStore(root)


@pytest.fixture
def url(root: Path) -> str:
    return str(root)


class TestDirectoryStore(SharedStoreContract):
    pass


def drafts(root: Path) -> list[Path]:
    return sorted((root / ".tmp").iterdir())


def test_folder_is_made_by_the_first_write_only(store: DirectoryStore, root: Path) -> None:
    assert not store.exists("a")
    assert list(store.list("")) == []
    store.delete("a")
    store.check()
    assert not root.parent.exists()
    store.put("a", b"")
    assert (root / "a").read_bytes() == b""


def test_url_is_an_absolute_path_whatever_becomes_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(Path("some/../store"))
    monkeypatch.chdir("/")
    store.put("a", b"")
    assert store.url == str(tmp_path / "store")
    assert (tmp_path / "store" / "a").exists()


def test_files_get_the_rights_that_the_umask_leaves(store: DirectoryStore, root: Path) -> None:
    before = os.umask(0o027)
    try:
        store.put("a/b", b"")
    finally:
        os.umask(before)
    assert (root / "a" / "b").stat().st_mode & 0o777 == 0o640
    assert (root / "a").stat().st_mode & 0o777 == 0o750


def test_delete_removes_the_folders_it_emptied(store: DirectoryStore, root: Path) -> None:
    store.put("runs/a/units/x/result.json", b"")
    store.put("runs/b", b"")
    store.delete("runs/a/units/x/result.json")
    assert os.listdir(root / "runs") == ["b"]


def test_folder_that_holds_no_object_is_not_listed(store: DirectoryStore, root: Path) -> None:
    store.put("runs/a/x", b"")
    (root / "runs" / "b" / "c").mkdir(parents=True)
    assert list(store.list_folders("runs/")) == ["a"]


def test_object_is_no_folder_and_a_folder_no_object(store: DirectoryStore) -> None:
    store.put("a/b", b"1")
    for key in ("a", "a/b/c"):
        for put in (store.put, lambda key, data: store.put_file(key, Path("/dev/null"))):
            with pytest.raises(UserError, match="in the way") as refused:
                put(key, b"2")
            assert refused.value.remedy
    assert store.get("a/b") == b"1"


def test_links_and_special_files_are_no_objects(
    store: DirectoryStore, root: Path, tmp_path: Path
) -> None:
    store.put("real/a", b"1")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "inside").symlink_to(root / "real")
    (root / "file").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    (root / b"\xff".decode(errors="surrogateescape")).write_bytes(b"")
    for key in ("folder/secret", "inside/a", "file", "pipe"):
        assert not store.exists(key)
        with pytest.raises(NotStored):
            store.get(key)
        store.delete("folder/secret")
    assert [found.key for found in store.list("")] == ["real/a"]
    assert list(store.list_folders("")) == ["real"]
    assert list(store.list("folder/")) == []
    with pytest.raises(UserError, match="in the way"):
        store.put("folder/b", b"")
    assert os.listdir(outside) == ["secret"]


def test_put_replaces_a_link_and_not_what_it_points_to(
    store: DirectoryStore, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_bytes(b"kept")
    root.mkdir(parents=True)
    (root / "a").symlink_to(tmp_path / "outside")
    store.put("a", b"new")
    assert store.get("a") == b"new"
    assert (tmp_path / "outside").read_bytes() == b"kept"


def test_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = DirectoryStore(tmp_path / "link")
    store.put("a/b", b"1")
    assert store.get("a/b") == b"1"
    assert (tmp_path / "real" / "a" / "b").exists()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.put("a", b""), id="put"),
        pytest.param(lambda store: store.get("a"), id="get"),
        pytest.param(lambda store: store.exists("a"), id="exists"),
        pytest.param(lambda store: list(store.list("")), id="list"),
        pytest.param(lambda store: store.check(), id="check"),
    ],
)
@pytest.mark.parametrize("below", ["", "below"])
def test_file_as_root_is_told(
    tmp_path: Path, call: Callable[[DirectoryStore], object], below: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="is not a folder") as refused:
        call(DirectoryStore(tmp_path / "file" / below))
    assert refused.value.where.startswith(str(tmp_path / "file"))


def test_killed_writer_leaves_nothing_that_is_seen(
    store: DirectoryStore, root: Path, tmp_path: Path
) -> None:
    store.put("a/file", b"old")
    os.mkfifo(tmp_path / "pipe")
    process = start_process(WRITE_FROM_PIPE, str(root), "a/file", str(tmp_path / "pipe"))
    with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
        pipe.write(b"x" * 3_000_000)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert [found.key for found in store.list("")] == ["a/file"]
    assert store.get("a/file") == b"old"
    (left,) = drafts(root)
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago, hour_ago))
    DirectoryStore(root).put("b", b"")
    assert drafts(root) == []


def test_draft_of_a_living_writer_is_never_swept(root: Path, tmp_path: Path) -> None:
    DirectoryStore(root).put("b", b"")
    os.mkfifo(tmp_path / "pipe")
    process = start_process(WRITE_FROM_PIPE, str(root), "a", str(tmp_path / "pipe"))
    with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
        pipe.write(b"x" * 3_000_000)
        (draft,) = drafts(root)
        hour_ago = time.time() - 3600
        os.utime(draft, (hour_ago, hour_ago))
        DirectoryStore(root).put("b", b"")
        assert drafts(root) == [draft]
    process.communicate()
    assert process.returncode == 0
    assert DirectoryStore(root).get("a") == b"x" * 3_000_000


def test_fresh_draft_is_left_alone(root: Path) -> None:
    (root / ".tmp").mkdir(parents=True)
    (root / ".tmp" / "fresh").write_bytes(b"")
    DirectoryStore(root).put("b", b"")
    assert [draft.name for draft in drafts(root)] == ["fresh"]


@pytest.mark.slow
def test_store_is_whole_after_writers_were_killed_at_any_moment(
    store: DirectoryStore, url: str
) -> None:
    values = {value * 1_000_000 for value in (b"A", b"B")}
    for turn in range(10):
        process = start_process(WRITE_FOREVER, url)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.02 * turn)  # the moment is what varies
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for found in store.list(""):
            assert found.key in {"marker", "new/A", "new/B"}
            assert store.get(found.key) in values


def test_folder_that_vanishes_beside_a_writer_is_made_again(store: DirectoryStore) -> None:
    stop = threading.Event()

    def remove() -> None:
        while not stop.is_set():
            store.delete("a/b/c/other")

    thread = threading.Thread(target=remove)
    thread.start()
    try:
        for number in range(300):
            store.put("a/b/c/file", str(number).encode())
            assert store.get("a/b/c/file") == str(number).encode()
            store.delete("a/b/c/file")
    finally:
        stop.set()
        thread.join()


WRITE_AND_TELL = """
import json, os, sys
from pathlib import Path
from proctor_grader.errors import ProctorError
from proctor_grader.store.table import open_store
store = open_store(sys.argv[1])
for call in (
    lambda: store.check(),
    lambda: store.put("a", b"x" * int(sys.argv[2])),
    lambda: store.put_new("b", b"x" * int(sys.argv[2])),
    lambda: store.put_file("c", Path(sys.argv[3])),
    lambda: store.get("small"),
    lambda: store.get_file("small", Path(sys.argv[1], "copy")),
):
    try:
        call()
        print("fine")
    except ProctorError as error:
        print(type(error).__name__, error.reason)
        assert error.where.startswith(sys.argv[1]) and error.remedy, str(error)
print(sorted(found.key for found in store.list("")))
print(os.listdir(Path(sys.argv[1], ".tmp")))
"""


def tell(bubblewrap: Path, view: list[str], root: Path, size: int) -> list[str]:
    """What every operation says in a view of the machine that bubblewrap makes."""
    command = [str(bubblewrap), "--dev-bind", "/", "/", *view, "--unshare-user", "--uid", "1000"]
    source = root.parent / "source"
    source.write_bytes(b"x" * size)
    return run_process(command, WRITE_AND_TELL, str(root), str(size), str(source)).splitlines()


def test_full_disk_is_told_and_leaves_neither_half_an_object_nor_a_draft(
    bubblewrap_path: Path, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    (root / ".tmp").mkdir(parents=True)
    small = ["--ro-bind", __file__, str(root / "small")]
    view = ["--size", "200000", "--tmpfs", str(root), "--dir", str(root / ".tmp"), *small]
    full = "StoreFull StoreFull"
    told = tell(bubblewrap_path, view, root, 5_000_000)
    assert told == ["fine", full, full, full, "fine", "fine", "['copy', 'small']", "[]"]


def test_read_only_disk_can_be_read_and_is_told(bubblewrap_path: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    DirectoryStore(root).put("small", b"kept")
    refused = "UserError AccessDenied"
    told = tell(bubblewrap_path, ["--ro-bind", str(root), str(root)], root, 1000)
    assert told == [*[refused] * 4, "fine", refused, "['small']", "[]"]


def test_folder_without_permission_is_told(bubblewrap_path: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    DirectoryStore(root).put("small", b"kept")
    (root / ".tmp").chmod(0o500)
    root.chmod(0o500)
    refused = "UserError AccessDenied"
    told = tell(bubblewrap_path, [], root, 1000)
    root.chmod(0o700)
    assert told == [*[refused] * 4, "fine", refused, "['small']", "[]"]
