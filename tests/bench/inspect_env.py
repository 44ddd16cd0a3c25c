"""An environment of its own for Inspect, whose lock does not go together with ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def inspect_python(cache: Path) -> Path | None:
    """Return the Python of an environment with `inspect-ai`; None when it can't be installed."""
    folder = cache / "inspect-env"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    known = subprocess.run([python, "-c", "import inspect_ai"], check=False, capture_output=True)
    if known.returncode == 0:
        return python
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "inspect-ai"], check=False, capture_output=True
    )
    return python if done.returncode == 0 else None
