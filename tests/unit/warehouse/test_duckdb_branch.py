from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from proctor_grader.errors import (
    BaseBusy,
    BranchError,
    ProctorError,
    StoreFull,
    UserError,
    WarehouseError,
)
from proctor_grader.warehouse.base import AdapterOptions, Mark
from proctor_grader.warehouse.duckdb import DuckDBAdapter, open_adapter, open_leftovers
from proctor_grader.warehouse.duckdb.files import is_open_here
from tests.unit.warehouse.conftest import Shop
from tests.unit.warehouse.duckdbfile import MARK, opened_elsewhere, table, view, write_database

FICLONE = 0x40049409


def when_cloning(monkeypatch: pytest.MonkeyPatch, act: Callable[[], int]) -> None:
    """Do something in the middle of a copy, in place of the kernel's clone of the file."""
    ioctl = fcntl.ioctl

    def instead(handle: int, request: int, *arguments: int) -> object:
        return act() if request == FICLONE else ioctl(handle, request, *arguments)

    monkeypatch.setattr(fcntl, "ioctl", instead)


def count(path: Path | str, name: str = "t") -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0])


def test_a_branch_is_a_folder_of_its_name_with_the_bases_file_name(shop: Shop) -> None:
    branch = shop.adapter.create("eval-1", MARK)
    folder = shop.options.branches_dir / "eval-1"
    assert branch.sandbox_path == folder
    assert branch.agent_dsn == branch.grader_dsn == str(folder / "shop.duckdb")
    assert os.listdir(folder) == ["shop.duckdb"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert os.access(branch.agent_dsn, os.W_OK)


def test_the_base_is_neither_written_nor_touched(shop: Shop) -> None:
    before = (shop.base.read_bytes(), shop.base.stat().st_mtime_ns, os.listdir(shop.base.parent))
    shop.base.chmod(0o444)
    shop.branch("CREATE TABLE t (a INTEGER)")
    after = (shop.base.read_bytes(), shop.base.stat().st_mtime_ns, os.listdir(shop.base.parent))
    assert after == before


def test_the_log_travels_with_its_file(shop: Shop) -> None:
    with opened_elsewhere(shop.base, "CREATE TABLE t AS SELECT * FROM range(5)") as process:
        process.kill()
        process.wait()
    log = shop.base.with_name("shop.duckdb.wal")
    assert log.stat().st_size > 0
    branch = shop.adapter.create("eval-1", MARK)
    assert log.exists()
    with shop.adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 5
    shared = shop.adapter.create_shared("eval-2", MARK)
    unit = shop.adapter.grant_read(shared, "eval-3", MARK)
    assert count(unit.agent_dsn) == 5
    with shop.adapter.open_reader(shared) as reader:
        assert reader.row_count(table("t")) == 5


def test_what_an_agent_left_unclosed_is_read(shop: Shop) -> None:
    branch = shop.adapter.create("eval-1", MARK)
    path = Path(branch.agent_dsn)
    with opened_elsewhere(path, "CREATE TABLE t AS SELECT * FROM range(5)") as process:
        process.kill()
        process.wait()
    with shop.adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 5


def test_a_base_that_is_being_written_is_busy_and_names_the_process(shop: Shop) -> None:
    with opened_elsewhere(shop.base) as process:
        with pytest.raises(BaseBusy, match=f"process {process.pid}") as caught:
            shop.adapter.create("eval-1", MARK)
        assert Path(sys.executable).resolve().name in str(caught.value)
        with pytest.raises(UserError, match=f"process {process.pid}"):
            shop.adapter.privileges()
    assert shop.adapter.list_marked() == ()
    assert shop.adapter.privileges() == ()


def test_a_busy_base_is_waited_for(shop: Shop) -> None:
    adapter = DuckDBAdapter(shop.base, replace(shop.options, base_wait_seconds=60.0))
    with opened_elsewhere(shop.base) as process, ThreadPoolExecutor(1) as pool:
        future = pool.submit(adapter.create, "eval-1", MARK)
        with pytest.raises(TimeoutError):
            future.result(timeout=0.3)
        process.kill()
        assert future.result(timeout=30).name == "eval-1"


def test_readers_of_the_base_elsewhere_do_not_matter(shop: Shop) -> None:
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print(1); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-uc", program, str(shop.base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert shop.adapter.create("eval-1", MARK).name == "eval-1"
        process.kill()


def test_a_base_that_this_process_has_open_keeps_its_lock(shop: Shop) -> None:
    with duckdb.connect(str(shop.base)):
        assert is_open_here(shop.base)
        with pytest.raises(BaseBusy, match="this very process"):
            shop.adapter.create("eval-1", MARK)
        program = "import duckdb, sys; duckdb.connect(sys.argv[1])"
        ended = subprocess.run(
            [sys.executable, "-c", program, str(shop.base)], capture_output=True, check=False
        )
        assert b"Could not set lock" in ended.stderr
    assert not is_open_here(shop.base)


def test_a_writer_is_kept_out_while_a_branch_is_copied(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    program = "import duckdb, sys; duckdb.connect(sys.argv[1])"

    def look() -> int:
        ended = subprocess.run(
            [sys.executable, "-c", program, str(shop.base)], capture_output=True, check=False
        )
        seen.append(ended.stderr)
        return 0

    when_cloning(monkeypatch, look)
    shop.adapter.create("eval-1", MARK)
    assert len(seen) == 1
    assert b"Could not set lock" in seen[0]


def test_a_base_that_changes_while_it_is_copied_is_busy(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> int:
        os.truncate(shop.base, shop.base.stat().st_size + 1)
        return 0

    when_cloning(monkeypatch, change)
    with pytest.raises(BaseBusy, match="changes while"):
        shop.adapter.create("eval-1", MARK)
    assert shop.adapter.list_marked() == ()
    assert not (shop.options.branches_dir / "eval-1").exists()


def test_a_run_goes_on_with_what_its_shared_branch_was_made_of(shop: Shop) -> None:
    write_database(shop.base, "CREATE TABLE t AS SELECT * FROM range(5)")
    shared = shop.adapter.create_shared("eval-0", MARK)
    with opened_elsewhere(shop.base, "INSERT INTO t VALUES (7)"):
        assert count(shop.adapter.create("eval-1", MARK).agent_dsn) == 5
        with shop.adapter.open_reader(shared) as reader:
            assert reader.row_count(table("t")) == 5
            assert count(shop.adapter.create("eval-2", MARK).agent_dsn) == 5
            assert count(shop.adapter.grant_read(shared, "eval-3", MARK).agent_dsn) == 5
            assert reader.row_count(table("t")) == 5
    write_database(shop.base, "INSERT INTO t VALUES (8)")
    other_run = Mark("inst-a", "run-2", MARK.expires)
    assert count(shop.adapter.create("eval-4", other_run).agent_dsn) > 5
    shop.adapter.drop("eval-0")
    assert count(shop.adapter.create("eval-5", MARK).agent_dsn) > 5


def test_bytes_are_copied_where_the_kernel_cannot(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_database(shop.base, "CREATE TABLE t AS SELECT range AS a FROM range(300000)")

    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    when_cloning(monkeypatch, refuse)
    monkeypatch.setattr(os, "copy_file_range", refuse)
    branch = shop.adapter.create("eval-1", MARK)
    assert Path(branch.agent_dsn).read_bytes() == shop.base.read_bytes()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_and_leaves_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    when_cloning(monkeypatch, refuse)
    monkeypatch.setattr(os, "copy_file_range", refuse)
    with pytest.raises(StoreFull, match="no room on the disk"):
        shop.adapter.create("eval-1", MARK)
    assert shop.adapter.list_marked() == ()
    assert os.listdir(shop.options.branches_dir) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda path: None, "there is no such file", id="missing"),
        pytest.param(lambda path: path.mkdir(), "is not a file", id="a-folder"),
        pytest.param(os.mkfifo, "is not a file", id="a-pipe"),
        pytest.param(lambda path: path.touch(), "is empty", id="empty"),
        pytest.param(lambda path: path.write_bytes(b"x" * 9), "no DuckDB", id="short"),
        pytest.param(
            lambda path: path.write_text("SQLite format 3" * 900), "no DuckDB", id="other"
        ),
        pytest.param(
            lambda path: path.write_bytes(b"x" * 8 + b"DUCK" + bytes(9000)),
            "can't be opened by DuckDB",
            id="damaged",
        ),
        pytest.param(lambda path: path.symlink_to("nowhere"), "no such file", id="link-to-nothing"),
    ],
)
def test_a_base_that_is_none_is_the_users_mistake(
    tmp_path: Path, make: object, message: str
) -> None:
    assert callable(make)
    make(tmp_path / "shop.duckdb")
    adapter = open_adapter(
        f"duckdb:///{tmp_path}/shop.duckdb", AdapterOptions("inst-a", tmp_path / "branches")
    )
    with pytest.raises(UserError, match=message) as caught:
        adapter.privileges()
    assert caught.value.where == str(tmp_path / "shop.duckdb")


def test_a_base_that_went_away_is_the_users_mistake(shop: Shop) -> None:
    shop.base.unlink()
    with pytest.raises(UserError, match="there is no such file"):
        shop.adapter.create("eval-1", MARK)
    assert shop.adapter.list_marked() == ()


def test_a_base_behind_a_link(tmp_path: Path) -> None:
    real = write_database(tmp_path / "real" / "v17.duckdb", "CREATE TABLE t AS SELECT 1 AS a")
    (tmp_path / "shop.duckdb").symlink_to(real)
    options = AdapterOptions("inst-a", tmp_path / "branches")
    adapter = open_adapter(str(tmp_path / "shop.duckdb"), options)
    assert adapter.privileges() == ()
    branch = adapter.create("eval-1", MARK)
    assert Path(branch.agent_dsn).name == "shop.duckdb"
    assert not Path(branch.agent_dsn).is_symlink()
    assert count(branch.agent_dsn) == 1


def test_branches_behind_a_link(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    options = AdapterOptions("inst-a", tmp_path / "link" / "branches")
    adapter = open_adapter(str(shop.base), options)
    branch = adapter.create("eval-1", MARK)
    write_database(Path(branch.agent_dsn), "CREATE TABLE t AS SELECT 1 AS a")
    with adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 1
        assert reader.dump(table("t"), tmp_path / "t", limit=None, max_bytes=10**6) == 1
    adapter.drop("eval-1")
    adapter.close()


def test_privileges_name_what_is_missing_and_make_nothing(tmp_path: Path, shop: Shop) -> None:
    options = AdapterOptions("inst-a", Path("/proc/nowhere/branches"))
    (shortfall,) = open_adapter(str(shop.base), options).privileges()
    assert "/proc" in shortfall.message
    assert shortfall.fatal
    assert shop.adapter.privileges() == ()
    assert not shop.options.branches_dir.exists()


def test_an_unmarked_folder_is_left_alone(shop: Shop) -> None:
    folder = shop.options.branches_dir / "eval-1"
    folder.mkdir(parents=True)
    (folder / "precious").write_text("mine")
    for act in (
        shop.adapter.drop,
        shop.adapter.fence,
        lambda name: shop.adapter.create(name, MARK),
    ):
        with pytest.raises(BranchError, match="no mark of this installation"):
            act("eval-1")
    assert (folder / "precious").read_text() == "mine"
    assert shop.adapter.list_marked() == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"installation": "inst-a"}', "\x00"])
def test_a_damaged_mark_counts_as_none(shop: Shop, text: str) -> None:
    shop.adapter.create("eval-1", MARK)
    (shop.options.branches_dir / "eval-1.mark.json").write_text(text)
    with pytest.raises(BranchError):
        shop.adapter.drop("eval-1")
    assert shop.adapter.list_marked() == ()


@pytest.mark.parametrize("state", ["mark-only", "empty-folder", "half-a-file"])
def test_a_branch_half_made_is_listed_and_dropped(shop: Shop, state: str) -> None:
    branch = shop.adapter.create("eval-1", MARK)
    path = Path(branch.agent_dsn)
    if state == "half-a-file":
        os.truncate(path, 1000)
    else:
        path.unlink()
    if state == "mark-only":
        path.parent.rmdir()
    leftovers = open_leftovers(shop.options)
    assert [(r.name, r.mark, r.busy) for r in leftovers.list_marked()] == [("eval-1", MARK, False)]
    leftovers.drop("eval-1")
    assert os.listdir(shop.options.branches_dir) == []


def test_a_creator_killed_while_copying_leaves_a_marked_branch(shop: Shop) -> None:
    program = (
        "import fcntl, sys, time\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from proctor_grader.warehouse.base import AdapterOptions, Mark\n"
        "from proctor_grader.warehouse.duckdb import open_adapter\n"
        "def hang(*_):\n"
        "    print('copying', flush=True)\n"
        "    time.sleep(600)\n"
        "fcntl.ioctl = hang\n"
        "adapter = open_adapter(sys.argv[1], AdapterOptions('inst-a', Path(sys.argv[2])))\n"
        "adapter.create('eval-1', Mark('inst-a', 'run-1', datetime(2031, 1, 1, tzinfo=UTC)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(shop.base), str(shop.options.branches_dir)],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"copying\n"
        assert [(r.name, r.busy) for r in shop.adapter.list_marked()] == [("eval-1", True)]
        process.send_signal(signal.SIGKILL)
    assert [(r.name, r.busy) for r in shop.adapter.list_marked()] == [("eval-1", False)]
    shop.adapter.drop("eval-1")
    assert os.listdir(shop.options.branches_dir) == []


@pytest.mark.parametrize("by_sweep", [False, True], ids=["by-the-next-reader", "by-a-sweep"])
def test_instance_folders_of_dead_processes_are_removed(shop: Shop, by_sweep: bool) -> None:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from proctor_grader.warehouse.base import AdapterOptions, Branch\n"
        "from proctor_grader.warehouse.duckdb import open_adapter\n"
        "adapter = open_adapter(sys.argv[1], AdapterOptions('inst-a', Path(sys.argv[2])))\n"
        "with adapter.open_reader(Branch('eval-1', '', sys.argv[3])):\n"
        "    os._exit(0)\n"
    )
    branch = shop.adapter.create("eval-1", MARK)
    readers = shop.options.branches_dir / ".readers"
    subprocess.run(
        [
            *(sys.executable, "-c", program, str(shop.base)),
            *(str(shop.options.branches_dir), branch.grader_dsn),
        ],
        check=True,
    )
    (left,) = readers.iterdir()
    assert (left / "data" / "shop.duckdb").exists()
    if by_sweep:
        open_leftovers(shop.options).close()
        assert list(readers.iterdir()) == []
    with shop.adapter.open_reader(branch):
        assert not left.exists()
        assert len(list(readers.iterdir())) == 1


def test_branches_made_at_the_same_time(shop: Shop) -> None:
    write_database(shop.base, "CREATE TABLE t AS SELECT * FROM range(5)")
    shop.adapter.create_shared("eval-shared", MARK)
    gate = threading.Barrier(4)

    def one(worker: int) -> list[int]:
        gate.wait()
        counts = []
        for place in range(5):
            name = f"eval-{worker}-{place}"
            branch = shop.adapter.create(name, MARK)
            write_database(Path(branch.agent_dsn), f"INSERT INTO t SELECT * FROM range({worker})")
            with shop.adapter.open_reader(branch) as reader:
                counts.append(reader.row_count(table("t")))
            shop.adapter.drop(name)
        return counts

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [[5 + worker] * 5 for worker in range(4)]
    assert [r.name for r in shop.adapter.list_marked()] == ["eval-shared"]
    # as many standing instances as there were threads, none for each branch
    assert len(list((shop.options.branches_dir / ".readers").iterdir())) <= 4


def test_an_instance_in_use_is_closed_when_it_is_given_back(shop: Shop) -> None:
    branch = shop.branch("CREATE TABLE t AS SELECT 1 AS a")
    with shop.adapter.open_reader(branch) as reader:
        shop.adapter.close()
        assert reader.row_count(table("t")) == 1
    assert list((shop.options.branches_dir / ".readers").iterdir()) == []


def test_a_branch_is_copied_for_reading_where_it_cannot_be_linked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = shop.branch("CREATE TABLE t AS SELECT 1 AS a")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    with shop.adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 1


def test_a_reader_without_room_for_its_link_says_so(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = shop.adapter.create("eval-1", MARK)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StoreFull), shop.adapter.open_reader(branch):
        pass


def test_an_adapter_without_a_base_makes_no_branch(shop: Shop) -> None:
    leftovers = open_leftovers(shop.options)
    assert leftovers.location == str(shop.options.branches_dir)
    assert leftovers.privileges() == ()
    with pytest.raises(BranchError, match="no base"):
        leftovers.create("eval-1", MARK)
    assert leftovers.list_marked() == ()
    assert os.listdir(shop.options.branches_dir) == []


def test_a_folder_that_appears_meanwhile_is_left_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shop.options.branches_dir / "eval-1"
    fsync = os.fsync

    def appear(handle: int) -> None:
        fsync(handle)
        os.mkdir(folder)
        (folder / "precious").write_text("mine")

    monkeypatch.setattr(os, "fsync", appear)
    with pytest.raises(BranchError, match="by somebody else"):
        shop.adapter.create("eval-1", MARK)
    assert (folder / "precious").read_text() == "mine"
    assert shop.adapter.list_marked() == ()


def test_two_readers_in_one_thread(shop: Shop) -> None:
    one = shop.branch("CREATE TABLE t AS SELECT 1 AS a", name="eval-1")
    two = shop.branch("CREATE TABLE t AS SELECT 1 AS a FROM range(2)", name="eval-2")
    with shop.adapter.open_reader(one) as first, shop.adapter.open_reader(two) as second:
        assert (first.row_count(table("t")), second.row_count(table("t"))) == (1, 2)


def test_a_view_cannot_reach_another_branch(shop: Shop) -> None:
    shop.branch("CREATE TABLE t AS SELECT 1 AS a", name="eval-1")
    other = shop.options.branches_dir / "eval-1" / "shop.duckdb"
    with (
        shop.adapter.open_reader(
            shop.branch(f"CREATE VIEW v AS SELECT * FROM read_blob('{other}')", name="eval-2")
        ) as reader,
        pytest.raises(ProctorError, match="disabled by configuration"),
    ):
        reader.row_count(view("v"))


def test_a_dropped_branch_cannot_be_read(shop: Shop) -> None:
    branch = shop.adapter.create("eval-1", MARK)
    shop.adapter.drop("eval-1")
    with (
        pytest.raises(WarehouseError, match="the branch is gone"),
        shop.adapter.open_reader(branch),
    ):
        pass


def test_a_reader_leaves_no_trace_and_drops_are_seen(shop: Shop) -> None:
    branch = shop.branch("CREATE TABLE t AS SELECT 1 AS a")
    with shop.adapter.open_reader(branch) as reader:
        assert reader.row_count(table("t")) == 1
        shop.adapter.drop("eval-1")
        assert reader.row_count(table("t")) == 1
    readers = shop.options.branches_dir / ".readers"
    assert [path for path in readers.rglob("*") if path.is_file()] == []
    shop.adapter.close()
    assert list(readers.iterdir()) == []


def test_a_process_that_still_writes_to_a_branch_is_named(shop: Shop) -> None:
    branch = shop.adapter.create("eval-1", MARK)
    with (
        opened_elsewhere(Path(branch.agent_dsn)) as process,
        pytest.raises(WarehouseError, match=f"PID {process.pid}"),
        shop.adapter.open_reader(branch),
    ):
        pass
    with shop.adapter.open_reader(branch) as reader:
        assert reader.relations() == ()
