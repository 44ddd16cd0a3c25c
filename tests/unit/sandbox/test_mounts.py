"""Planning what is seen where."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor_operator.sandbox import View
from proctor_operator.sandbox.mounts import Sight, plan_mounts, sight_of

SYSTEM = [("/usr", Sight.READ)]


def view(
    writable: str = "", readable: str = "", hidden: str = "", branch: str | None = None
) -> View:
    def paths(text: str) -> tuple[Path, ...]:
        return tuple(Path(path) for path in text.split())

    return View(
        writable=paths(writable),
        readable=paths(readable),
        tmp=Path("/state/unit/tmp"),
        branch=None if branch is None else Path(branch),
        hidden=paths(hidden),
    )


@pytest.mark.parametrize(
    ("given", "planned"),
    [
        pytest.param(view("/s/work", "/s/input"), ["/s/input r", "/s/work w"], id="own-folders"),
        pytest.param(view(readable="/usr/lib/python3"), [], id="seen-already"),
        pytest.param(view(hidden="/home/me/set"), [], id="hidden-already"),
        pytest.param(view(branch="/s/branch"), ["/s/branch w"], id="a-branch"),
        pytest.param(view(hidden="/usr/src/set"), ["/usr/src/set h"], id="a-set-in-the-system"),
        pytest.param(
            view("/usr/src/app/.state/u/work", "/usr/src/app/.venv", "/usr/src/app"),
            ["/usr/src/app h", "/usr/src/app/.state/u/work w", "/usr/src/app/.venv r"],
            id="a-project-in-the-system",
        ),
        pytest.param(
            view("", "/opt/agent", "/opt/agent/set"),
            ["/opt/agent r", "/opt/agent/set h"],
            id="a-set-in-what-is-handed-over",
        ),
        pytest.param(view("", "/opt/a /opt/a/b"), ["/opt/a r"], id="one-in-the-other"),
        pytest.param(view("/opt/a", "/opt/a"), ["/opt/a r", "/opt/a w"], id="writing-wins"),
        pytest.param(
            view("/opt/a-b", "/opt/a/c"), ["/opt/a/c r", "/opt/a-b w"], id="like-names-apart"
        ),
        pytest.param(view("", "/opt/b /opt/a"), ["/opt/a r", "/opt/b r"], id="in-order"),
    ],
)
def test_the_innermost_path_counts(given: View, planned: list[str]) -> None:
    found = [f"{path} {sight.value[0]}" for path, sight in plan_mounts(given, SYSTEM)]

    assert sorted(found) == sorted(planned)
    for index, line in enumerate(found):
        inside = [other for other in found[:index] if other.startswith(line[:-2] + "/")]
        assert inside == [], "a parent must come before what lies in it"


@pytest.mark.parametrize(
    ("path", "sight"),
    [
        ("/usr/bin/true", Sight.READ),
        ("/usr", Sight.READ),
        ("/usrlocal/x", Sight.HIDE),
        ("/home/me", Sight.HIDE),
        ("/s/work/x", Sight.WRITE),
    ],
)
def test_a_paths_sight_is_that_of_the_last_folder_over_it(path: str, sight: Sight) -> None:
    assert sight_of(path, [*SYSTEM, ("/s/work", Sight.WRITE)]) is sight


def test_what_is_hidden_is_hidden_below_every_name(tmp_path: Path) -> None:
    (tmp_path / "real/set").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("real")
    shown = f"{tmp_path / 'real'} {tmp_path / 'alias'}"

    planned = plan_mounts(view("", shown, str(tmp_path / "real/set")), SYSTEM)

    assert {path for path, sight in planned if sight is Sight.HIDE} == {
        str(tmp_path / "real/set"),
        str(tmp_path / "alias/set"),
    }


def test_what_is_handed_over_and_hidden_is_hidden(tmp_path: Path) -> None:
    planned = plan_mounts(view("", str(tmp_path), str(tmp_path)), SYSTEM)

    assert planned[-1] == (str(tmp_path), Sight.HIDE)


def test_a_hidden_link_hides_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")

    planned = plan_mounts(view("", str(tmp_path), str(tmp_path / "alias")), SYSTEM)

    assert (str(tmp_path / "real"), Sight.HIDE) in planned
