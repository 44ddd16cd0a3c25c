"""Texts that try to run, to fetch, to break out of where they stand, or to disguise themselves."""

from __future__ import annotations

from decimal import Decimal

from proctor_grader.model.criterion import NumberCriterion
from proctor_grader.model.result import ItemResult, StageRecord, Verdict
from proctor_grader.model.task import TaskId
from proctor_grader.model.unit import Stage
from tests.make.report import ReportedRun, json_lines, make_result, make_task

ATTACKS = (
    "<script>window.hacked = 1; alert(1)</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<svg onload='window.hacked = 1'><script>window.hacked = 1</script></svg>",
    "</code></pre></textarea></title></style></script><h1>forged heading</h1>",
    "<iframe src='https://evil.example/'></iframe>",
    "<meta http-equiv='refresh' content='0;url=https://evil.example/'>",
    "<a href='javascript:window.hacked = 1'>click</a>",
    "<style>body { display: none }</style><link rel=stylesheet href=https://evil.example/x.css>",
    "<form action=https://evil.example><input name=q autofocus onfocus='window.hacked = 1'>",
    '" onmouseover="window.hacked = 1" autofocus onfocus=\'window.hacked = 1\' x="',
    "{{ 7 * 7 }}{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "&lt;script&gt;window.hacked = 1&lt;/script&gt;",
    "]]><!-- --><script>window.hacked = 1</script>",
    "\x00\x01\x1b[2J\x7f\x85\u202egnp.exe\u2066\u200b\ufeff\U000e0041\ud800\udc00\ufffe",
)
HOSTILE = "\n".join(ATTACKS)
HOSTILE_DOC = f"""# {HOSTILE}

[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)
![pixel](https://evil.example/pixel.png) <javascript:window.hacked=1>
[fine](https://example.com/)

| {ATTACKS[0]} |
|---|
| {ATTACKS[1]} |

```{ATTACKS[2]}
{ATTACKS[3]}
```
"""
SECRET = "hunter2hunter2"


def hostile_run(run: ReportedRun) -> ReportedRun:
    """Add units that are hostile wherever an agent or a set can put text."""
    evil = TaskId(f"../../{ATTACKS[0]}\n\u202e")
    task = make_task(
        evil,
        title=HOSTILE,
        kind=HOSTILE,
        prompt=HOSTILE,
        doc=HOSTILE_DOC,
        why=HOSTILE,
        gt=HOSTILE,
        category=HOSTILE,
        tags=ATTACKS,
        covers=ATTACKS,
        builds=ATTACKS,
        setup=HOSTILE,
        criteria=(),
    )
    ended = StageRecord(ok=False, reason=HOSTILE, message=HOSTILE, started_at=HOSTILE, seconds=1)
    answer = f"{HOSTILE} 101 {'long ' * 200_000} postgresql://agent:{SECRET}@db/x"
    closest = {"value": 101, "start": len(HOSTILE) + 1, "end": len(HOSTILE) + 4, "text": HOSTILE}
    result = make_result(
        evil,
        Verdict.FAILURE,
        reason=HOSTILE,
        message=HOSTILE,
        answer=answer[:20_000],
        items=(
            ItemResult(HOSTILE, False, HOSTILE, {"value": 1, "tolerance": 1, "closest": closest}),
            ItemResult(HOSTILE, None, HOSTILE, {HOSTILE: [HOSTILE], "x": {HOSTILE: HOSTILE}}),
        ),
        stages={HOSTILE: ended, Stage.AGENT.value: ended},
        usage={HOSTILE: HOSTILE},
        details={HOSTILE: HOSTILE},
        captures={
            HOSTILE: {"exists": True, "columns": {HOSTILE: HOSTILE}, "refused": HOSTILE},
            "shown": {"exists": True, "grain": {"key": [HOSTILE], "unique": False}},
        },
    )
    conversation = [
        {"type": HOSTILE, "message": HOSTILE},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": HOSTILE}]}},
        {"role": "user", "content": [{"type": "tool_use", "name": HOSTILE, "input": HOSTILE}]},
    ]
    events = [{"ts": HOSTILE, "tool": HOSTILE, "input": {HOSTILE: 1}, "result": HOSTILE}]
    run.add(
        task,
        result,
        {
            "transcript.jsonl": json_lines(conversation) + HOSTILE,
            "events.jsonl": json_lines(events),
            "stdout.log": f"{HOSTILE}\npassword={SECRET}",
            "stderr.log": b"\xff\xfe\x00" * 1000,
        },
        {Stage.SETUP: HOSTILE.replace("\ud800\udc00", "")},
    )
    quoted = ATTACKS[0].replace("'", "''")
    run.capture(result, "shown", f"""SELECT '{quoted}' AS "{ATTACKS[1]}", chr(8238) || 'x' AS b""")
    criteria = (NumberCriterion(HOSTILE, Decimal(1), Decimal(0)),)
    item = ItemResult(HOSTILE, None, HOSTILE)
    run.add(make_task("named", criteria=criteria), make_result("named", items=(item,)))
    return run
