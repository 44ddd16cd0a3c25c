"""Whether a working directory was changed, and taking credentials out of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from proctor_grader.pod.workspace import Workspace, mask_tree
from proctor_grader.store.redact import Masker

SECRET = "correct-horse-battery"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory with a file, a folder and a link."""
    folder = tmp_path / "work"
    (folder / "models").mkdir(parents=True)
    (folder / "models/a.sql").write_text("select 1")
    (folder / "link").symlink_to("models")
    return folder


def rewrite_keeping_its_times(work: Path) -> None:
    path = work / "models/a.sql"
    found = path.stat()
    path.write_text("select 2")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def remove_all(work: Path) -> None:
    for path in (work / "models/a.sql", work / "link"):
        path.unlink()
    (work / "models").rmdir()
    work.rmdir()


def swap_for_a_link(work: Path) -> None:
    work.rename(work.with_name("moved"))
    work.symlink_to("moved")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda work: (work / "new").write_text(""), id="a-new-file"),
        pytest.param(lambda work: (work / "new").mkdir(), id="a-new-folder"),
        pytest.param(lambda work: (work / "models/new").write_text(""), id="a-new-file-below"),
        pytest.param(lambda work: (work / "link").unlink(), id="a-link-removed"),
        pytest.param(lambda work: (work / "models/a.sql").unlink(), id="a-file-removed"),
        pytest.param(lambda work: (work / "models/a.sql").chmod(0o777), id="other-rights"),
        pytest.param(rewrite_keeping_its_times, id="other-content-with-the-old-time"),
        pytest.param(remove_all, id="everything-removed"),
        pytest.param(swap_for_a_link, id="a-link-in-its-place"),
    ],
)
def test_every_change_is_seen(work: Path, change: Callable[[Path], object]) -> None:
    before = Workspace.of(work)

    change(work)

    assert before.differs_from(work)


def test_looking_and_passing_by_is_no_change(work: Path) -> None:
    before = Workspace.of(work)

    (work / "models/a.sql").read_text()
    (work / "new").write_text("")
    (work / "new").unlink()

    assert not before.differs_from(work)


def test_credentials_are_replaced_in_every_file(work: Path, tmp_path: Path) -> None:
    (work / "models/a.sql").write_text(f"-- {SECRET}\n")
    (work / "run.sh").write_bytes(b"\xff" + SECRET.encode() * 2)
    (work / "run.sh").chmod(0o755)

    mask_tree(work, Masker([SECRET]), tmp_path)

    assert (work / "models/a.sql").read_text() == "-- ***\n"
    assert (work / "run.sh").read_bytes() == b"\xff******"
    assert os.access(work / "run.sh", os.X_OK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]


def test_files_without_credentials_are_not_touched(work: Path, tmp_path: Path) -> None:
    before = Workspace.of(work)

    mask_tree(work, Masker([SECRET]), tmp_path)

    assert not before.differs_from(work)


def test_a_folder_closed_to_writing_is_no_shelter(work: Path, tmp_path: Path) -> None:
    (work / "models/a.sql").write_text(SECRET)
    (work / "models/a.sql").chmod(0o400)
    (work / "models").chmod(0o500)

    mask_tree(work, Masker([SECRET]), tmp_path)

    assert (work / "models/a.sql").read_text() == "***"


def test_nothing_outside_is_reached(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(SECRET)
    (outside / "linked").write_text(SECRET)
    (work / "folder").symlink_to(outside)
    (work / "file").symlink_to(outside / "file")
    (work / "hard").hardlink_to(outside / "linked")
    os.mkfifo(work / "pipe")

    mask_tree(work, Masker([SECRET]), tmp_path)

    assert (outside / "file").read_text() == SECRET
    assert (outside / "linked").read_text() == SECRET


def test_a_folder_replaced_by_a_link_is_refused(work: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text(SECRET)
    (tmp_path / "root").symlink_to(tmp_path / "other")

    with pytest.raises(NotADirectoryError):
        mask_tree(tmp_path / "root", Masker([SECRET]), tmp_path)
    with pytest.raises(FileNotFoundError):
        mask_tree(tmp_path / "missing", Masker([SECRET]), tmp_path)

    assert (tmp_path / "other/file").read_text() == SECRET


class CountingMasker(Masker):
    """Counts what it has to look at."""

    def __init__(self, *secrets: str) -> None:
        super().__init__(secrets)
        self.heard = 0

    def mask_chunks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        def counted() -> Iterator[bytes]:
            for chunk in chunks:
                self.heard += len(chunk)
                yield chunk

        return super().mask_chunks(counted())


def write_sparse(path: Path, size: int, text: str) -> None:
    """A file that is a hole but for a text at its end."""
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size - len(text))
        file.write(text.encode())


def test_holes_of_sparse_files_are_not_read(work: Path, tmp_path: Path) -> None:
    for number in range(20):
        write_sparse(work / f"hole{number}", 50_000_000, "nothing to hide")
    masker = CountingMasker(SECRET)

    mask_tree(work, masker, tmp_path)

    assert masker.heard < 20 * 100_000


def test_credential_after_a_hole_is_replaced_and_the_hole_stays(work: Path, tmp_path: Path) -> None:
    write_sparse(work / "hole", 1_000_000, SECRET)

    mask_tree(work, Masker([SECRET]), tmp_path)

    assert (work / "hole").read_bytes() == bytes(1_000_000 - len(SECRET)) + b"***"


def test_file_too_large_to_be_kept_is_not_even_read(work: Path, tmp_path: Path) -> None:
    write_sparse(work / "huge", 100 * 1024**3, SECRET)
    masker = CountingMasker(SECRET)

    mask_tree(work, masker, tmp_path)

    assert masker.heard < 100


def test_files_with_credentials_are_removed_once_rewriting_them_takes_too_much_room(
    work: Path, tmp_path: Path
) -> None:
    for name in "abcd":
        write_sparse(work / name, 1_000_000, SECRET)

    mask_tree(work, Masker([SECRET]), tmp_path, max_bytes=2_500_000)

    left = [path for path in work.iterdir() if path.name in set("abcd")]
    assert len(left) == 2
    assert all(path.read_bytes().endswith(b"***") for path in left)


def test_nothing_is_read_when_there_is_no_credential(work: Path, tmp_path: Path) -> None:
    masker = CountingMasker()

    mask_tree(work, masker, tmp_path)

    assert masker.heard == 0
