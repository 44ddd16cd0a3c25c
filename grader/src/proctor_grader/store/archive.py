"""Folder trees as `tar.gz`, packed from what an agent may have made and unpacked without trust.

Equal trees give equal bytes. Memory use does not grow with the size of files.
"""

from __future__ import annotations

from proctor_grader.store.pack import PackReport, pack_tree
from proctor_grader.store.skipped import Skipped
from proctor_grader.store.tarstream import ArchiveError
from proctor_grader.store.unpack import UnpackReport, unpack_tree

__all__ = ["ArchiveError", "PackReport", "Skipped", "UnpackReport", "pack_tree", "unpack_tree"]
