"""The set that `proctor init` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor_grader.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

EVAL_JSON = """\
{
  "name": "starter",
  "description": "Two questions with exact golds; README.md says how to go on",
  "defaults": {"tolerance": 0.01},
  "tasks": [
    {
      "id": "order_count",
      "title": "Orders in 2025",
      "why": "The simplest question there is: if this fails, look at the agent's way in first",
      "prompt": "prompts/order_count.txt",
      "checks": [{"name": "orders", "value": 1200, "tolerance": 0}]
    },
    {
      "id": "revenue",
      "title": "Revenue in 2025",
      "why": "Agents that join orders to lines without care count shipping twice",
      "prompt_text": "What was the revenue of 2025, and how many orders is that?",
      "checks": [
        {"name": "revenue", "value": 84250.75},
        {"name": "orders", "value": 1200, "tolerance": 0}
      ]
    }
  ]
}
"""

REPLAY = """\
# Recorded answers, by task id: `proctor run . --agent replay:replay.yaml` plays them back.
# An entry may also have: sql (statements run on the branch), files (path: text), exit, sleep.
order_count:
  answer: There were 1,200 orders in 2025.
revenue:
  # Wrong on purpose, to see what a failure looks like: the gold is 84,250.75.
  answer: Revenue was $91.2k over 1,200 orders.
"""

README = """\
# An eval set to start from

| file | what it is |
|---|---|
| `eval.json` | the tasks: what is asked and what the answer must hold |
| `prompts/` | what the agent is told, one file a task (or `prompt_text` in eval.json) |
| `docs/` | for people: how a gold was found; an agent never sees it |
| `replay.yaml` | recorded answers, to try the set without an agent |

A check passes when one number of the answer lies within `tolerance` (relative) of `value`.
A task with `"class": "write"` gets a branch of its own in the warehouse and may be graded by the
table it builds: `"grade": {"kind": "model_rebuilt", "model": "marts.fct_orders"}`.

    proctor check .
    proctor run . --agent oracle
    proctor run . --agent replay:replay.yaml
    proctor run . --agent 'command:my-agent --print' --warehouse duckdb:///warehouse.duckdb
"""

FILES = {
    "eval.json": EVAL_JSON,
    "prompts/order_count.txt": "How many orders were placed in 2025? Reply with the number.\n",
    "docs/order_count.md": "The gold is `select count(*) from orders where year = 2025`.\n",
    "replay.yaml": REPLAY,
    "README.md": README,
}


def write_starter(directory: Path, set_format: str) -> list[str]:
    """Write the starter set and return the names of its files.

    Raises:
        UserError: the format is unknown, or the folder is not empty or can't be written.
    """
    if set_format != "eval-json":
        raise UserError(
            f"no starter for format '{set_format}'", where="--format", remedy="use eval-json"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UserError(
                "is not empty, nothing was written",
                where=str(directory),
                remedy="name a new folder",
            )
        for name, text in FILES.items():
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise UserError(
            f"can't be written ({error.strerror})",
            where=str(directory),
            remedy="name a folder that you may write",
        ) from error
    return list(FILES)
