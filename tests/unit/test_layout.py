"""The tree keeps the shape that packaging and imports rely on."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "operator" / "src", ROOT / "grader" / "src")


def test_operator_folder_does_not_shadow_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_every_folder_of_modules_is_a_package() -> None:
    """The wheel is made of packages only: a folder without __init__.py would be left out."""
    folders = {file.parent for source in SOURCES for file in source.glob("*/**/*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_packages_tell_that_they_are_typed() -> None:
    packages = [folder for source in SOURCES for folder in source.iterdir() if folder.is_dir()]
    named = [folder for folder in packages if (folder / "__init__.py").exists()]
    assert len(named) == 2
    assert all((folder / "py.typed").exists() for folder in named)
