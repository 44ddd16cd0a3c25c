"""Names that whoever starts an agent or a script and whoever runs inside agree on.

Source: design.md, section 4; eval-json format, section 8.
"""

from __future__ import annotations

PROMPT_FILE = "PROCTOR_PROMPT_FILE"
WORKDIR = "PROCTOR_WORKDIR"
OUTPUT = "PROCTOR_OUTPUT"
WAREHOUSE_DSN = "PROCTOR_WAREHOUSE_DSN"
WAREHOUSE_DSN_ALIAS = "SP_WAREHOUSE_DSN"
TASK = "PROCTOR_TASK"
TASK_ALIAS = "SP_EVAL_TASK"
VARIANT = "PROCTOR_VARIANT"
TRIAL = "PROCTOR_TRIAL"
PHASE = "PROCTOR_PHASE"
PHASE_ALIAS = "SP_EVAL_PHASE"

SCRIPT_NAMES = (TASK, TASK_ALIAS, PHASE, PHASE_ALIAS, WAREHOUSE_DSN, WAREHOUSE_DSN_ALIAS)
"""Set by the run for every script; an env file's entries never overrule them."""

ANSWER_FILE = "answer.txt"
TRANSCRIPT_FILE = "transcript.jsonl"
EVENTS_FILE = "events.jsonl"
PROMPT_NAME = "prompt.txt"
STDOUT_LOG = "stdout.log"
STDERR_LOG = "stderr.log"
EXIT_FILE = "exit.json"
WORKSPACE_ARCHIVE = "workspace.tar.gz"
INSTRUCTIONS_FILE = "CLAUDE.md"
MANIFEST_FILE = "eval.json"

SCRIPT_TIMEOUT_SECONDS = 1800
AGENT_TIMEOUT_SECONDS = 600
GRADE_TIMEOUT_SECONDS = 600
AGENT_GRACE_SECONDS = 10
"""Between TERM and KILL."""

MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_LOG_BYTES = 64 * 1024 * 1024
MAX_WORKSPACE_BYTES = 256 * 1024 * 1024
MAX_WORKSPACE_FILES = 10_000
