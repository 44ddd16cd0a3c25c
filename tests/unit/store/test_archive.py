from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import socket
import tarfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proctor_grader.errors import UserError
from proctor_grader.store.archive import ArchiveError, Skipped, pack_tree, unpack_tree

Tree = dict[str, bytes | None]
MIB = 1024 * 1024


def make_tree(root: Path, tree: Tree) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for path, data in tree.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(data)
    return root


def read_tree(root: Path) -> Tree:
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


TREE: Tree = {
    "a": None,
    "a/b.sql": b"select 1",
    "a/empty": b"",
    "a-b": b"2",
    "empty": None,
    "odd \n\u00fc\U0001f600": b"3",
    b"\xff\xfe".decode(errors="surrogateescape"): b"4",
    "long": None,
    "long/" + "x" * 255: b"5",
    "exact": b"z" * 512,
}


def test_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", TREE)
    (root / "a-b").chmod(0o700)
    packed = pack_tree(root, tmp_path / "out.tar.gz")
    assert (packed.files, packed.bytes) == (7, sum(len(data or b"") for data in TREE.values()))
    assert packed.is_complete
    unpacked = unpack_tree(tmp_path / "out.tar.gz", tmp_path / "deep" / "copy")
    assert (unpacked.files, unpacked.bytes, unpacked.skipped) == (packed.files, packed.bytes, ())
    assert read_tree(tmp_path / "deep" / "copy") == read_tree(root)
    assert (tmp_path / "deep" / "copy" / "a-b").stat().st_mode & 0o100
    assert not (tmp_path / "deep" / "copy" / "exact").stat().st_mode & 0o100


def test_other_programs_read_it(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", TREE)
    pack_tree(root, tmp_path / "out.tar.gz")
    with tarfile.open(tmp_path / "out.tar.gz") as tar:
        tar.extractall(tmp_path / "copy", filter="data")
    assert read_tree(tmp_path / "copy") == read_tree(root)


def test_equal_trees_give_equal_bytes(tmp_path: Path) -> None:
    first = make_tree(tmp_path / "first", TREE)
    second = make_tree(tmp_path / "second", dict(reversed(TREE.items())))
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(path.stat().st_mode & 0o700)
    outs = io.BytesIO(), io.BytesIO()
    for root, out in zip((first, second), outs, strict=True):
        pack_tree(root, out)
        assert not out.closed
    assert outs[0].getvalue() == outs[1].getvalue()


def test_empty_folder_is_an_empty_archive(tmp_path: Path) -> None:
    out = io.BytesIO()
    packed = pack_tree(make_tree(tmp_path / "root", {}), out)
    assert (packed.files, packed.is_complete) == (0, True)
    out.seek(0)
    unpack_tree(out, tmp_path / "copy")
    assert read_tree(tmp_path / "copy") == {}


# What an agent may put into its folder


def test_links_and_special_files_are_left_out_and_told(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    root = make_tree(tmp_path / "root", {"folder/file": b"1", "twin": b"2"})
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "loop").symlink_to(".")
    (root / "outside").symlink_to(tmp_path)
    os.link(root / "twin", root / "other")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        packed = pack_tree(root, tmp_path / "out.tar.gz")
    hard, link, special = (
        "it has 2 names (hard links)",
        "it is a symbolic link",
        "it is a special file",
    )
    assert packed.skipped == (
        Skipped("link", link),
        Skipped("loop", link),
        Skipped("other", hard),
        Skipped("outside", link),
        Skipped("pipe", special),
        Skipped("socket", special),
        Skipped("twin", hard),
    )
    assert packed.skipped_count == 7
    assert not packed.truncated
    assert not packed.is_complete
    unpack_tree(tmp_path / "out.tar.gz", tmp_path / "copy")
    assert read_tree(tmp_path / "copy") == {"folder": None, "folder/file": b"1"}


def test_hard_links_of_our_own_tree_are_files(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"twin": b"2"})
    os.link(root / "twin", root / "other")
    packed = pack_tree(root, tmp_path / "out.tar.gz", hard_links=True)
    assert (packed.files, packed.is_complete) == (2, True)


def test_root_that_is_a_link_or_missing_is_not_packed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    for root in (tmp_path / "link", tmp_path / "missing"):
        with pytest.raises(OSError, match=root.name):
            pack_tree(root, tmp_path / "out.tar.gz")
    assert not (tmp_path / "out.tar.gz").exists()


def test_tree_that_changes_under_our_hands_leads_nowhere_else(tmp_path: Path) -> None:
    outside = make_tree(tmp_path / "outside", {"secret": b"secret", "folder/secret": b"secret"})
    root = make_tree(tmp_path / "root", {f"f{number:02}/x": b"1" for number in range(40)})
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number = (number + 1) % 40
            place, aside = root / f"f{number:02}", root / f".aside{number:02}"
            place.rename(aside)
            place.symlink_to(outside)
            place.unlink()
            aside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        outs = [tmp_path / f"out{number}" for number in range(20)]
        for out in outs:
            pack_tree(root, out)
    finally:
        stop.set()
        thread.join()
    for out in outs:
        with tarfile.open(out) as tar:
            assert not [name for name in tar.getnames() if "secret" in name]


def test_file_that_grows_or_shrinks_keeps_the_archive_whole(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"log": os.urandom(3 * MIB), "z": b"after"})

    class Meddler(io.BytesIO):
        """Shortens the file as soon as some of it is written."""

        def write(self, data: object) -> int:
            if self.tell() > 1000:
                os.truncate(root / "log", MIB)
            return super().write(data)  # type: ignore[arg-type]  # any buffer

    out = Meddler()
    packed = pack_tree(root, out)
    assert [skipped.path for skipped in packed.skipped] == ["log"]
    out.seek(0)
    unpack_tree(out, tmp_path / "copy")
    found = read_tree(tmp_path / "copy")
    assert found["z"] == b"after"
    assert len(found["log"] or b"") == 3 * MIB


def test_more_files_than_allowed_are_left_out(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {f"{number:03}": b"x" for number in range(20)})
    packed = pack_tree(root, tmp_path / "out.tar.gz", max_files=5)
    assert (packed.files, packed.truncated) == (5, True)
    with tarfile.open(tmp_path / "out.tar.gz") as tar:
        assert tar.getnames() == ["000", "001", "002", "003", "004"]
    assert not pack_tree(root, tmp_path / "out.tar.gz", max_files=20).truncated


def test_file_beyond_the_size_is_left_out_and_smaller_ones_are_not(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"a": b"x" * 60, "b": b"x" * 50, "c": b"x" * 40})
    packed = pack_tree(root, tmp_path / "out.tar.gz", max_bytes=100)
    assert (packed.files, packed.bytes, packed.truncated) == (2, 100, True)
    assert [skipped.path for skipped in packed.skipped] == ["b"]


def test_huge_sparse_file_costs_nothing(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"a": b"1"})
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    began = time.monotonic()
    packed = pack_tree(root, tmp_path / "out.tar.gz", max_bytes=256 * MIB)
    assert (packed.files, packed.truncated) == (1, True)
    assert time.monotonic() - began < 5


def test_deep_tree_is_cut(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"a/b/c/d": b"1", "a/b/x": b"2"})
    packed = pack_tree(root, tmp_path / "out.tar.gz", max_depth=3)
    assert packed.truncated
    assert packed.skipped == (Skipped("a/b/c/d", "it lies more than 3 folders deep"),)
    unpack_tree(tmp_path / "out.tar.gz", tmp_path / "copy", max_depth=3)
    assert read_tree(tmp_path / "copy").keys() == {"a", "a/b", "a/b/c", "a/b/x"}


def test_endlessly_deep_tree_ends(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"file": b"1"})
    handle = os.open(root, os.O_RDONLY)
    name = "d" * 200
    for _ in range(300):
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    packed = pack_tree(root, tmp_path / "out.tar.gz")
    shutil.rmtree(root)  # too deep for those who clean up by path
    assert (packed.files, packed.skipped_count) == (1, 1)
    unpack_tree(tmp_path / "out.tar.gz", tmp_path / "copy")
    assert (tmp_path / "copy" / "file").read_bytes() == b"1"


def test_flood_of_odd_entries_is_bounded(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {})
    for number in range(1500):
        (root / f"{number}").symlink_to("nowhere")
    packed = pack_tree(root, tmp_path / "out.tar.gz", max_files=10)
    assert packed.truncated
    assert packed.skipped_count == 1040
    assert len(packed.skipped) == 100


def test_many_small_files_are_fast(tmp_path: Path) -> None:
    tree: Tree = {f"d{number % 50}/f{number}": b"select 1\n" * 100 for number in range(5000)}
    root = make_tree(tmp_path / "root", tree)
    began = time.process_time()
    packed = pack_tree(root, tmp_path / "out.tar.gz")
    unpack_tree(tmp_path / "out.tar.gz", tmp_path / "copy")
    assert time.process_time() - began < 10
    assert packed.files == 5000


def test_large_file_is_packed_and_unpacked_in_constant_memory(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"large": os.urandom(MIB) * 20})
    tracemalloc.start()
    pack_tree(root, tmp_path / "out.tar.gz")
    unpack_tree(tmp_path / "out.tar.gz", tmp_path / "copy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * MIB
    digests = {
        hashlib.sha256((place / "large").read_bytes()).digest()
        for place in (root, tmp_path / "copy")
    }
    assert len(digests) == 1


# Archives from anywhere


def member(name: str, data: bytes = b"", *, kind: bytes = tarfile.REGTYPE, **more: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    for attribute, value in more.items():
        setattr(info, attribute, value)
    body = data + bytes(-len(data) % 512)
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + body


def packed_members(*members: bytes, end: bytes = bytes(1024)) -> io.BytesIO:
    return io.BytesIO(gzip.compress(b"".join(members) + end))


@pytest.mark.parametrize(
    "form",
    [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT],
    ids=["pax", "gnu", "ustar"],
)
def test_archives_of_other_programs_are_read(tmp_path: Path, form: int) -> None:
    tree: Tree = {"a": None, "a/b": b"1", "a/" + "x" * 90 + "/" + "y" * 90: b"2"}
    if form != tarfile.USTAR_FORMAT:
        tree["ü/" + "z" * 200 + "/\U0001f600"] = b"3"
    root = make_tree(tmp_path / "root", tree)
    with tarfile.open(tmp_path / "out", "w:gz", format=form) as tar:
        tar.add(root, ".")
    unpack_tree(tmp_path / "out", tmp_path / "copy")
    assert read_tree(tmp_path / "copy") == read_tree(root)


def test_archive_of_git_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(
        fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": "0" * 40}
    ) as tar:
        info = tarfile.TarInfo("folder/file")
        tar.addfile(info)
    out.seek(0)
    unpack_tree(out, tmp_path / "copy")
    assert read_tree(tmp_path / "copy") == {"folder": None, "folder/file": b""}


def test_links_and_devices_in_an_archive_are_left_out_and_told(tmp_path: Path) -> None:
    archive = packed_members(
        member("link", kind=tarfile.SYMTYPE, linkname="/etc"),
        member("hard", kind=tarfile.LNKTYPE, linkname="link"),
        member("device", kind=tarfile.CHRTYPE),
        member("pipe", kind=tarfile.FIFOTYPE),
        member("new kind", b"data", kind=b"Z"),
        member("link/passwd", b"1"),
        member("x" * 300, b"2"),
        member("fine", b"3"),
    )
    unpacked = unpack_tree(archive, tmp_path / "copy")
    assert [skipped.path for skipped in unpacked.skipped] == [
        *("link", "hard", "device", "pipe", "new kind"),
        "x" * 300,
    ]
    assert read_tree(tmp_path / "copy") == {"fine": b"3", "link": None, "link/passwd": b"1"}
    assert (tmp_path / "copy" / "fine").stat().st_mode & 0o7000 == 0


def pax(**attributes: str) -> bytes:
    """An extended header that says this of the member behind it."""
    text = b""
    for name, value in attributes.items():
        record = f" {name.replace('__', '.')}={value}\n".encode()
        size = len(record)
        while size != len(record) + len(str(size)):
            size = len(record) + len(str(size))
        text += str(size).encode() + record
    return member("pax", text, kind=tarfile.XHDTYPE)


def bomb(size: int, kind: bytes) -> Iterator[bytes]:
    yield member("bomb", kind=kind, size=size)
    yield bytes(size)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        pytest.param([member("/etc/x")], "outside", id="an-absolute-path"),
        pytest.param([member("a/../../x")], "outside", id="a-path-upwards"),
        pytest.param([pax(path="../x"), member("x")], "outside", id="an-extended-path-upwards"),
        pytest.param([pax(path="a\0b"), member("x")], "outside", id="a-nul-in-a-path"),
        pytest.param([member("a"), member("a")], "twice", id="a-file-twice"),
        pytest.param([member("a"), member("a/b")], "below a file", id="a-file-below-a-file"),
        pytest.param([member("a/b"), member("a")], "twice", id="a-file-in-place-of-a-folder"),
        pytest.param([member(".")], "twice", id="a-file-in-place-of-the-root"),
        pytest.param([member(f"{n}") for n in range(11)], "more than 10 files", id="many-files"),
        pytest.param(
            [member(f"{n}", kind=tarfile.SYMTYPE) for n in range(1041)], "too many", id="many-links"
        ),
        pytest.param(
            [
                member(f"{n}/" + "/".join("abcdefghijklmnop"), kind=tarfile.DIRTYPE)
                for n in range(80)
            ],
            "too many folders",
            id="many-folders-in-few-members",
        ),
        pytest.param([member("a", bytes(600)), member("b", bytes(600))], "bytes", id="large-files"),
        pytest.param([pax(size="99999999999"), member("a")], "bytes", id="a-large-extended-size"),
        pytest.param([member("a", bytes(2000), kind=b"Z")], "bytes", id="large-data-of-no-file"),
        pytest.param([member("/".join("a" * 70))], "deep", id="a-deep-path"),
        pytest.param([*bomb(MIB, tarfile.XHDTYPE)], "too large", id="a-large-extended-header"),
        pytest.param([*bomb(MIB, tarfile.GNUTYPE_LONGNAME)], "too large", id="a-large-name"),
        pytest.param(
            [member("a", kind=tarfile.GNUTYPE_SPARSE)], "not supported", id="a-sparse-file"
        ),
        pytest.param(
            [pax(GNU__sparse__major="1"), member("a")], "not supported", id="a-sparse-map"
        ),
        pytest.param([member("x", b"9 path", kind=tarfile.XHDTYPE)], "no sound", id="a-cut-record"),
        pytest.param(
            [member("x", b"0 a=b\n", kind=tarfile.XHDTYPE)], "no sound", id="a-zero-record"
        ),
        pytest.param([b"x" * 512], "no sound", id="no-tar"),
        pytest.param([member("a", size=100)], "too early", id="a-cut-file"),
    ],
)
def test_bad_archive_is_refused_and_leaves_nothing(
    tmp_path: Path, members: list[bytes], words: str
) -> None:
    archive = packed_members(member("first", b"1"), *members)
    if "cut-file" in os.environ["PYTEST_CURRENT_TEST"]:
        archive = packed_members(member("first", b"1"), *members, end=b"")
    with pytest.raises(ArchiveError, match=words):
        unpack_tree(archive, tmp_path / "copy", max_files=10, max_bytes=1000)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(lambda data: data[:-20], "no sound", id="cut"),
        pytest.param(lambda data: data[:-6] + b"xx" + data[-4:], "no sound", id="wrong-check-sum"),
        pytest.param(lambda data: data[:50] + b"xxxx" + data[54:], "no sound", id="damaged"),
        pytest.param(gzip.decompress, "no sound", id="not-compressed"),
        pytest.param(lambda _: b"", "too early", id="empty"),
        pytest.param(
            lambda data: gzip.compress(gzip.decompress(data) + b"x" * 2 * MIB),
            "behind its end",
            id="more-behind-its-end",
        ),
    ],
)
def test_damaged_archive_is_refused(
    tmp_path: Path, spoil: Callable[[bytes], bytes], words: str
) -> None:
    out = io.BytesIO()
    pack_tree(make_tree(tmp_path / "root", {"a": os.urandom(5000)}), out)
    with pytest.raises(ArchiveError, match=words):
        unpack_tree(io.BytesIO(spoil(out.getvalue())), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_hostile_archive_needs_little_memory_and_time(tmp_path: Path) -> None:
    archives = [
        packed_members(*bomb(60 * MIB, kind)) for kind in (tarfile.XHDTYPE, tarfile.REGTYPE, b"Z")
    ]
    tracemalloc.start()
    began = time.process_time()
    for archive in archives:
        with pytest.raises(ArchiveError):
            unpack_tree(archive, tmp_path / "copy", max_bytes=30 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * MIB
    assert time.process_time() - began < 5


def test_target_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "link").symlink_to("/etc")
    with pytest.raises(UserError, match="is not empty"):
        unpack_tree(packed_members(member("link/x")), tmp_path / "copy")
    assert os.listdir(tmp_path / "copy") == ["link"]


def test_missing_archive_makes_no_target(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unpack_tree(tmp_path / "missing", tmp_path / "copy")
    assert os.listdir(tmp_path) == []
