"""What every store must do, whatever it lies on."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proctor_grader.errors import AlreadyExists, NotStored, UserError
from proctor_grader.store.base import Store, StoredObject

ROOT = Path(__file__).resolve().parents[2]

INVALID_KEYS = [
    pytest.param("", id="an-empty-key"),
    pytest.param("/a", id="an-absolute-key"),
    pytest.param("a/", id="a-folder"),
    pytest.param("a//b", id="an-empty-name"),
    pytest.param("..", id="the-folder-above"),
    pytest.param("runs/../../a", id="a-folder-above-in-the-middle"),
    pytest.param("a/./b", id="a-dot"),
    pytest.param(".tmp/a", id="the-folder-of-drafts"),
    pytest.param("a\x00b", id="a-nul-character"),
    pytest.param("a\nb", id="a-line-break"),
    pytest.param("a\udc80b", id="a-lone-surrogate"),
    pytest.param("a/" + "x" * 256, id="a-name-of-256-bytes"),
    pytest.param("a/" + "ü" * 128, id="a-name-of-128-characters-in-256-bytes"),
    pytest.param("/".join(["x" * 200] * 4), id="a-key-of-803-bytes"),
]
ODD_KEYS = [
    pytest.param("a b+%25?#&=;@$,!'()*~\\|<>`{}[]^\"", id="signs-that-mean-something-in-urls"),
    pytest.param("ünïcode/日本/😀.json", id="unicode"),
    pytest.param(".hidden/..b", id="leading-dots"),
    pytest.param("-r/--f", id="leading-dashes"),
    pytest.param("x" * 255, id="a-name-of-255-bytes"),
    pytest.param("/".join(["x" * 199] * 4), id="a-key-of-799-bytes"),
]
UNSORTED = (
    "..b",
    "a/.c",
    "a/b/c",
    "a/b-c",
    "a/b.c/d",
    "a/B",
    "a/b0",
    "a/ü",
    "a/😀",
    "a/\uffe0",
    "ab",
    "b/a",
)


class StoreContract:
    """Subclasses give a fixture `store`: an empty store."""

    def test_put_stores_and_replaces(self, store: Store) -> None:
        store.put("runs/a/x.json", b"first")
        store.put("runs/a/x.json", b"second")
        store.put("runs/a/y.json", b"", durable=True)
        assert store.get("runs/a/x.json") == b"second"
        assert store.get("runs/a/y.json") == b""

    def test_put_new_never_overwrites_even_an_equal_value(self, store: Store) -> None:
        store.put_new("runs/a/plan.json", b"first")
        for data in (b"second", b"first"):
            with pytest.raises(AlreadyExists) as refused:
                store.put_new("runs/a/plan.json", data)
            assert refused.value.key == "runs/a/plan.json"
        assert store.get("runs/a/plan.json") == b"first"

    def test_put_new_succeeds_again_after_delete(self, store: Store) -> None:
        store.put_new("a", b"first")
        store.delete("a")
        store.put_new("a", b"second")
        assert store.get("a") == b"second"

    def test_one_of_many_threads_wins_put_new(self, store: Store) -> None:
        keys = [f"race/{number}" for number in range(20)]
        start = threading.Barrier(4)

        def write(name: bytes) -> list[str]:
            won = []
            for key in keys:
                start.wait()
                try:
                    store.put_new(key, name * 1000)
                except AlreadyExists:
                    continue
                except BaseException:
                    start.abort()  # or the others would wait for ever
                    raise
                won.append(key)
            return won

        names = (b"0", b"1", b"2", b"3")
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(write, names))
        assert sorted(keys) == sorted(key for mine in won for key in mine)
        for name, mine in zip(names, won, strict=True):
            assert {store.get(key) for key in mine} <= {name * 1000}

    def test_missing_key_is_told_by_its_name(self, store: Store, tmp_path: Path) -> None:
        store.put("a/b", b"")
        for key in ("a", "a/c", "a/b/c", "x/y"):
            assert not store.exists(key)
            with pytest.raises(NotStored) as missing:
                store.get(key)
            assert missing.value.key == key
            with pytest.raises(NotStored):
                store.get_file(key, tmp_path / "file")
            store.delete(key)
        assert list(tmp_path.iterdir()) == []
        assert store.get("a/b") == b""

    def test_exists_follows_put_and_delete(self, store: Store) -> None:
        assert not store.exists("a/b")
        store.put("a/b", b"1")
        assert store.exists("a/b")
        store.delete("a/b")
        assert not store.exists("a/b")
        store.delete("a/b")

    def test_put_file_returns_the_digest_of_what_it_stored(
        self, store: Store, tmp_path: Path
    ) -> None:
        for size in (0, 1, 3_000_000):
            data = os.urandom(size)
            (tmp_path / "source").write_bytes(data)
            digest = store.put_file("a/file", tmp_path / "source")
            assert digest == hashlib.sha256(data).hexdigest()
            assert store.get("a/file") == data

    def test_put_file_of_a_missing_file_stores_nothing(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            store.put_file("a", tmp_path / "missing")
        assert not store.exists("a")

    def test_get_file_replaces_the_file(self, store: Store, tmp_path: Path) -> None:
        data = os.urandom(3_000_000)
        store.put("a/file", data)
        (tmp_path / "copy").write_bytes(b"old")
        store.get_file("a/file", tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == data
        assert os.listdir(tmp_path) == ["copy"]

    def test_list_is_sorted_by_the_bytes_of_keys(self, store: Store) -> None:
        for key in UNSORTED:
            store.put(key, key.encode())
        expected = [
            StoredObject(key, len(key.encode())) for key in sorted(UNSORTED, key=str.encode)
        ]
        assert list(store.list("")) == expected
        assert list(store.list("a/b")) == [
            found for found in expected if found.key.startswith("a/b")
        ]

    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            pytest.param("runs/", ["runs/1/a", "runs/10/a", "runs/2"], id="a-folder"),
            pytest.param("runs/1", ["runs/1/a", "runs/10/a"], id="the-beginning-of-names"),
            pytest.param("runs/2", ["runs/2"], id="a-whole-key"),
            pytest.param("runs/2/", [], id="an-object-as-a-folder"),
            pytest.param("runs/3/", [], id="a-missing-folder"),
            pytest.param("other", [], id="the-beginning-of-no-name"),
            pytest.param("runs/..", [], id="dots-that-lead-nowhere"),
            pytest.param("x" * 300, [], id="a-name-that-is-too-long"),
        ],
    )
    def test_list_finds_what_starts_with(
        self, store: Store, prefix: str, expected: list[str]
    ) -> None:
        for key in ("runs/1/a", "runs/10/a", "runs/2", "sets/1"):
            store.put(key, b"")
        assert [found.key for found in store.list(prefix)] == expected

    def test_list_of_an_empty_store_is_empty(self, store: Store) -> None:
        assert list(store.list("")) == []
        assert list(store.list_folders("")) == []
        assert list(store.list_folders("runs/local/")) == []

    def test_list_folders_leaves_out_objects_and_emptied_folders(self, store: Store) -> None:
        for key in ("units/b/1/x", "units/b/2/x", "units/a/x", "units/a-b/x", "units/file"):
            store.put(key, b"")
        assert sorted(store.list_folders("units/")) == ["a", "a-b", "b"]
        assert list(store.list_folders("")) == ["units"]
        store.delete("units/a/x")
        assert sorted(store.list_folders("units/")) == ["a-b", "b"]

    def test_list_goes_on_beyond_a_thousand_objects(self, store: Store) -> None:
        keys = [f"many/{number:04}/x" for number in range(1003)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: store.put(key, b""), keys))
        assert [found.key for found in store.list("many/")] == keys
        assert list(store.list_folders("many/")) == [f"{number:04}" for number in range(1003)]

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_odd_key_is_a_key_like_any_other(self, store: Store, key: str) -> None:
        store.put_new(key, b"first")
        with pytest.raises(AlreadyExists):
            store.put_new(key, b"second")
        assert store.get(key) == b"first"
        assert [found.key for found in store.list(key[:3])] == [key]
        store.delete(key)
        assert not store.exists(key)

    @pytest.mark.parametrize("key", INVALID_KEYS)
    def test_invalid_key_is_refused_by_every_operation(
        self, store: Store, key: str, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_bytes(b"")
        for call in (
            lambda: store.put(key, b""),
            lambda: store.put_new(key, b""),
            lambda: store.put_file(key, tmp_path / "file"),
            lambda: store.get(key),
            lambda: store.get_file(key, tmp_path / "copy"),
            lambda: store.exists(key),
            lambda: store.delete(key),
        ):
            with pytest.raises(UserError) as refused:
                call()
            assert refused.value.reason == "InvalidKey"
            assert "\x00" not in str(refused.value)
        assert os.listdir(tmp_path) == ["file"]
        assert list(store.list("")) == []

    @pytest.mark.parametrize("prefix", ["/", "../", "a/../b", "a//", "./", "a\x00", ".tmp/"])
    def test_invalid_prefix_is_refused_at_once(self, store: Store, prefix: str) -> None:
        with pytest.raises(UserError):
            store.list(prefix)
        with pytest.raises(UserError):
            store.list_folders(prefix)

    def test_folders_are_listed_below_a_folder_only(self, store: Store) -> None:
        with pytest.raises(UserError, match="ends with '/'"):
            store.list_folders("runs")

    def test_check_leaves_nothing_behind(self, store: Store) -> None:
        store.check()
        store.put("a", b"")
        store.check()
        assert [found.key for found in store.list("")] == ["a"]

    def test_threads_share_a_store(self, store: Store) -> None:
        def use(number: int) -> list[bool]:
            key, data = f"units/{number % 5}/{number}", str(number).encode() * 1000
            store.put(key, data)
            found = [store.exists(key), store.get(key) == data]
            store.delete(key)
            return [*found, not store.exists(key)]

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(use, range(100)))
        assert results == [[True, True, True]] * 100
        assert list(store.list("")) == []

    def test_reader_never_sees_half_of_a_value(self, store: Store) -> None:
        values = [bytes([number]) * 300_000 for number in (65, 66)]
        store.put("a", values[0])
        done = threading.Event()

        def write() -> None:
            for turn in range(30):
                store.put("a", values[turn % 2])
            done.set()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            seen = set()
            while not done.is_set() and not writing.done():
                seen.add(store.get("a"))
            writing.result()
        assert seen <= set(values)


class SharedStoreContract(StoreContract):
    """For stores that other processes can open; `url` is what opens the same place."""

    def test_one_of_two_processes_wins_put_new(self, store: Store, url: str) -> None:
        keys = [f"race/{number}" for number in range(30)]
        processes = [start_process(WRITE_ALL, url, str(number), *keys) for number in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        won = [process.communicate(timeout=60)[0].split() for process in processes]
        assert [process.returncode for process in processes] == [0, 0]
        assert sorted(keys) == sorted(won[0] + won[1])
        for number, mine in enumerate(won):
            assert {store.get(key) for key in mine} <= {str(number).encode() * 10_000}

    def test_large_file_needs_little_memory(self, store: Store, url: str, tmp_path: Path) -> None:
        size = 64 * 1024 * 1024
        block = os.urandom(1024 * 1024)
        with (tmp_path / "large").open("wb") as file:
            for _ in range(size // len(block)):
                file.write(block)
        source, copy = tmp_path / "large", tmp_path / "copy"
        process = start_process(MEASURE_MEMORY, url, str(source), str(copy))
        digest, more_kib = process.communicate(timeout=120)[0].split()
        assert process.returncode == 0
        assert digest == hashlib.sha256(block * 64).hexdigest()
        assert hashlib.sha256(copy.read_bytes()).hexdigest() == digest
        assert [found.size_bytes for found in store.list("large")] == [size]
        assert int(more_kib) < 24 * 1024


WRITE_ALL = """
import sys
from proctor_grader.errors import AlreadyExists
from proctor_grader.store.table import open_store
url, name, *keys = sys.argv[1:]
store = open_store(url)
store.exists("warm")
print("ready", flush=True)
sys.stdin.readline()
for key in keys:
    try:
        store.put_new(key, name.encode() * 10_000)
    except AlreadyExists:
        continue
    print(key)
"""

MEASURE_MEMORY = """
import resource, sys
from pathlib import Path
from proctor_grader.store.table import open_store
url, source, copy = sys.argv[1:]
store = open_store(url)
small = Path(copy + ".small")
small.write_bytes(b"x")
store.put_file("small", small)
store.get_file("small", small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
digest = store.put_file("large", Path(source))
store.get_file("large", Path(copy))
print(digest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def start_process(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python process of its own that runs a program text with Proctor at hand."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=process_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_process(wrapper: list[str], program: str, *arguments: str) -> str:
    """What a program text prints that is run to its end below a wrapper's command."""
    return subprocess.run(
        [*wrapper, sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=process_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def process_environment() -> dict[str, str]:
    """Ours, with Proctor's package on the path."""
    return os.environ | {"PYTHONPATH": str(ROOT / "grader" / "src")}
