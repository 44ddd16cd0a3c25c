"""What `proctor_grader` promises to keep."""

from __future__ import annotations

import pytest

import proctor_grader


def test_every_public_name_can_be_had() -> None:
    assert dir(proctor_grader) == sorted(proctor_grader.__all__)
    for name in proctor_grader.__all__:
        assert getattr(proctor_grader, name).__name__ == name


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'load_sets'"):
        proctor_grader.load_sets  # noqa: B018  # asking is the test
