"""The project tree that agents get: fetched once, and checked that it holds no answer key."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from proctor_grader.contract import INSTRUCTIONS_FILE
from proctor_grader.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proctor_grader.model.task import EvalSet

CLONE_TIMEOUT_SECONDS = 600
_READ_SIZE = 1024 * 1024


def fetch_project(project_repo: str, set_dir: Path, target: Path) -> Path:
    """Return the folder of a project: a fresh shallow clone of a URL, or a local folder itself.

    Args:
        project_repo: `https://` URL, or a folder, relative to the set.
        set_dir: the set as the user named it.
        target: a folder that does not exist yet, for the clone.

    Raises:
        RunError: there is no such project, or it can't be cloned.
    """
    if not project_repo.startswith("https://"):
        return _local_folder(project_repo, set_dir)
    command = [
        "git",
        *("-c", "core.hooksPath=/dev/null", "-c", "credential.helper="),
        *("-c", "protocol.allow=never", "-c", "protocol.https.allow=always"),
        *("clone", "--quiet", "--depth=1", "--single-branch", "--no-tags"),
        *("--", project_repo, str(target)),
    ]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(target.parent),
        "LC_ALL": "C",
    }
    for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO", "HTTPS_PROXY", "https_proxy", "NO_PROXY"):
        if name in os.environ:
            environment[name] = os.environ[name]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CLONE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_cloned(project_repo, str(error)) from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _not_cloned(project_repo, told[-1] if told else f"git ended with {done.returncode}")
    return target


def refuse_answer_key(project: Path, set_dir: Path, eval_set: EvalSet, source: Path) -> None:
    """Refuse a project tree that holds a file of the set, other than prompts and instructions.

    Args:
        project: the tree that agents get.
        set_dir: the set's folder.
        eval_set: the set; its prompts may be in the project.
        source: where the project came from; inside the set, its files are no secrets of the set.

    Raises:
        RunError: names both files.
    """
    secret = dict(_digests(set_dir, eval_set, source))
    if not secret:
        return
    sizes = {size for size, _ in secret}
    for path in _files(project):
        size = path.stat().st_size
        if size not in sizes:
            continue
        known = secret.get((size, _sha256(path)))
        if known is not None:
            raise RunError(
                f"the project's file '{path.relative_to(project)}' is the same as the set's "
                f"'{known}', so the agent would see the answer key",
                where="project_repo",
                remedy="take the set's files out of the project",
                reason="ProjectHoldsAnswerKey",
            )


def _local_folder(project_repo: str, set_dir: Path) -> Path:
    folder = (set_dir / project_repo).resolve()
    if not folder.is_dir():
        raise RunError(
            f"'{project_repo}' is neither an https:// URL nor a folder",
            where="project_repo",
            remedy="name the project's repository or folder",
            reason="ProjectNotFound",
        )
    return folder


def _not_cloned(url: str, told: str) -> RunError:
    return RunError(
        f"'{url}' can't be cloned ({told})",
        where="project_repo",
        remedy="check the URL and that it can be read without a password",
        reason="ProjectNotCloned",
    )


def _digests(
    set_dir: Path, eval_set: EvalSet, source: Path
) -> Iterator[tuple[tuple[int, str], str]]:
    prompts = {task.prompt.encode("utf-8", "surrogateescape") for task in eval_set.tasks}
    inside = source.resolve()
    for path in _files(set_dir):
        if inside in path.resolve().parents:
            continue
        name = path.relative_to(set_dir).as_posix()
        data = path.read_bytes()
        is_told = name.lower() == INSTRUCTIONS_FILE.lower() or data in prompts
        if data.strip() and not is_told:
            yield (len(data), hashlib.sha256(data).hexdigest()), name


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_SIZE):
            digest.update(block)
    return digest.hexdigest()
