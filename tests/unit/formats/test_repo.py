"""Reading a set's files: bounded, below the root, never through a link, never blocking."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from proctor_grader.errors import UserError
from proctor_grader.formats import repo as repo_module
from proctor_grader.formats.repo import FaultKind, FileFault, Repo
from tests.unit.formats.setfolder import write_set


def kind_of(found: object) -> FaultKind:
    assert isinstance(found, FileFault)
    return found.kind


def test_text_without_its_byte_order_mark(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"a/b.txt": "\ufeffhi\r\n"})
    with Repo(root) as repo:
        assert repo.read_text("a/b.txt") == "hi\r\n"
        assert repo.read_text("./a//b.txt") == "hi\r\n"
        assert repo.find("a/b.txt") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/etc/passwd", FaultKind.NOT_RELATIVE, id="absolute"),
        pytest.param("../outside.txt", FaultKind.ESCAPES, id="outside"),
        pytest.param("inside", FaultKind.LINK, id="link-inside"),
        pytest.param("outside", FaultKind.LINK, id="link-outside"),
        pytest.param("dangling", FaultKind.LINK, id="dangling-link"),
        pytest.param("loop", FaultKind.LINK, id="loop"),
        pytest.param("up/outside.txt", FaultKind.LINK, id="linked-folder"),
        pytest.param("up/gone/x", FaultKind.LINK, id="linked-folder-with-nothing-behind"),
        pytest.param("a/up/outside.txt", FaultKind.LINK, id="linked-folder-further-down"),
        pytest.param("inside/", FaultKind.LINK, id="link-written-as-a-folder"),
        pytest.param("gone", FaultKind.MISSING, id="missing"),
        pytest.param("a", FaultKind.MISSING, id="folder"),
        pytest.param(".", FaultKind.MISSING, id="the-root"),
        pytest.param("a/b.txt/", FaultKind.MISSING, id="file-written-as-a-folder"),
        pytest.param("a/b.txt/.", FaultKind.MISSING, id="file-with-a-dot-behind"),
        pytest.param("a/b.txt/c", FaultKind.MISSING, id="through-a-file"),
        pytest.param("x" * 300, FaultKind.MISSING, id="name-too-long"),
        pytest.param("/".join(["a"] * 5000), FaultKind.MISSING, id="path-too-long"),
        pytest.param("latin1", FaultKind.NOT_UTF8, id="not-utf-8"),
    ],
)
def test_a_path_has_one_fault(path: str, kind: FaultKind, tmp_path: Path) -> None:
    root = write_set(
        tmp_path,
        {"a/b.txt": "x", "latin1": b"\xe9"},
        {
            "inside": "a/b.txt",
            "outside": "../outside.txt",
            "dangling": "nowhere",
            "loop": "loop",
            "up": "..",
            "a/up": "../..",
        },
    )
    with Repo(root) as repo:
        found = repo.read_text(path)
        assert kind_of(found) is kind
        assert isinstance(found, FileFault)
        assert found.path == path
        if kind is not FaultKind.NOT_UTF8:
            assert kind_of(repo.find(path)) is kind


def test_the_root_may_be_reached_through_a_link(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"a.txt": "x"})
    (tmp_path / "link").symlink_to(root)
    with Repo(tmp_path / "link") as repo:
        assert repo.read_text("a.txt") == "x"


def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    root = write_set(tmp_path, {})
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server, Repo(root) as repo:
        server.bind(str(root / "socket"))
        assert kind_of(repo.read_text("pipe")) is FaultKind.MISSING
        assert kind_of(repo.find("pipe")) is FaultKind.MISSING
        assert kind_of(repo.read_text("socket")) is FaultKind.MISSING


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_no_file(tmp_path: Path) -> None:
    root = write_set(tmp_path, {})
    try:
        os.mknod(root / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this sandbox lets nobody make a device")
    with Repo(root) as repo:
        assert kind_of(repo.read_text("zero")) is FaultKind.MISSING


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, as_nobody: None) -> None:
    root = write_set(tmp_path, {"a.txt": "x", "d/b.txt": "x"})
    (root / "a.txt").chmod(0)
    (root / "d").chmod(0)
    try:
        with Repo(root) as repo:
            for path in ("a.txt", "d/b.txt"):
                found = repo.read_text(path)
                assert kind_of(found) is FaultKind.DENIED
                assert isinstance(found, FileFault)
                assert found.detail == "permission denied"
    finally:
        (root / "d").chmod(0o700)


def test_a_folder_that_may_only_be_passed_through_is_enough(
    tmp_path: Path, as_nobody: None
) -> None:
    root = write_set(tmp_path, {"d/b.txt": "x"})
    (root / "d").chmod(0o100)
    try:
        with Repo(root) as repo:
            assert repo.read_text("d/b.txt") == "x"
    finally:
        (root / "d").chmod(0o700)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"small": b"12345678"})
    with (root / "huge").open("wb") as huge:
        huge.truncate(1 << 40)
    with Repo(root) as repo:
        assert kind_of(repo.read_text("huge")) is FaultKind.TOO_LARGE
        assert kind_of(repo.read_bytes("small", limit=7)) is FaultKind.TOO_LARGE
        assert repo.read_bytes("small", limit=8) == b"12345678"


def test_a_file_that_does_not_tell_its_size_is_bounded_too(tmp_path: Path) -> None:
    """Files of /proc say that they are empty."""
    with Repo("/proc/self") as repo:
        content = repo.read_bytes("status")
        assert isinstance(content, bytes)
        assert b"Pid:" in content
        assert kind_of(repo.read_bytes("status", limit=10)) is FaultKind.TOO_LARGE


def test_all_files_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repo_module, "MAX_SET_BYTES", 10)
    root = write_set(tmp_path, {"a": b"12345678"})
    with Repo(root) as repo:
        assert repo.read_text("a") == "12345678"
        found = repo.read_text("a")
        assert kind_of(found) is FaultKind.TOO_LARGE


def test_names_are_utf8_whatever_the_locale(tmp_path: Path) -> None:
    root = write_set(tmp_path, {})
    (Path(os.fsdecode(os.fsencode(root))) / "ü.txt").write_text("x")
    os.close(os.open(os.fsencode(root) + b"/\xff.yaml", os.O_CREAT | os.O_WRONLY))
    with Repo(root) as repo:
        assert repo.read_text("ü.txt") == "x"
        for name in repo.walk():
            assert isinstance(repo.read_bytes(name), bytes)


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    root = write_set(tmp_path, {"a/b/c.txt": "x", "latin1": b"\xe9"}, {"l": "a"})
    before = set(os.listdir("/proc/self/fd"))
    with Repo(root) as repo:
        for path in ("a/b/c.txt", "a/b", "a/x/y", "l/b/c.txt", "latin1", "../x", "a/b/c.txt/d"):
            repo.read_text(path)
            repo.find(path)
        list(repo.walk())
    with pytest.raises(UserError):
        Repo(root / "latin1")
    assert set(os.listdir("/proc/self/fd")) == before


def test_walk_passes_over_links_and_hidden_names(tmp_path: Path) -> None:
    root = write_set(
        tmp_path,
        {"b.yml": "", "a/z.yml": "", "a/b/c.yml": "", ".git/x": "", "a/.h": "", "c/d.yml": ""},
        {"l.yml": "b.yml", "up": ".."},
    )
    os.mkfifo(root / "pipe")
    with Repo(root) as repo:
        assert list(repo.walk()) == ["b.yml", "a/z.yml", "a/b/c.yml", "c/d.yml"]
        assert list(repo.walk("a")) == ["a/z.yml", "a/b/c.yml"]
        assert list(repo.walk("a", hidden=True)) == ["a/.h", "a/z.yml", "a/b/c.yml"]
        assert list(repo.walk("up")) == []
        assert list(repo.walk("gone")) == []


def test_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_set(tmp_path, {"a/b/c/d": "", "e": ""})
    with Repo(root) as repo:
        monkeypatch.setattr(repo_module, "MAX_WALK_DEPTH", 2)
        with pytest.raises(UserError, match="levels"):
            list(repo.walk())
        monkeypatch.setattr(repo_module, "MAX_WALK_ENTRIES", 1)
        with pytest.raises(UserError, match="1 files"):
            list(repo.walk())


def test_a_tree_that_changes_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """A name that is swapped between a file and a link outside is a file or a link, never both."""
    root = write_set(tmp_path, {"x": "inside", "d/outside.txt": "inside"})
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "link").symlink_to("../outside.txt")
            (root / "link").replace(root / "x")
            (root / "d").rename(root / "real")
            (root / "d").symlink_to("..")
            (root / "d").unlink()
            (root / "real").rename(root / "d")
            (root / "file").write_text("inside")
            (root / "file").replace(root / "x")

    swapping = threading.Thread(target=swap)
    swapping.start()
    texts: set[str] = set()
    kinds: set[FaultKind] = set()
    try:
        with Repo(root) as repo:
            for turn in range(100_000):
                for path in ("x", "d/outside.txt"):
                    found = repo.read_text(path)
                    if isinstance(found, FileFault):
                        kinds.add(found.kind)
                    else:
                        texts.add(found)
                if turn > 2000 and FaultKind.LINK in kinds and texts:
                    break
    finally:
        stop.set()
        swapping.join()
    assert texts == {"inside"}
    assert FaultKind.LINK in kinds


@pytest.mark.parametrize("root", ["gone", "outside.txt", "gone/deeper", "a\0b"])
def test_a_root_that_is_no_folder(root: str, tmp_path: Path) -> None:
    write_set(tmp_path, {})
    with pytest.raises(UserError) as caught:
        Repo(tmp_path / root)
    assert caught.value.remedy
    assert "\0" not in str(caught.value)
