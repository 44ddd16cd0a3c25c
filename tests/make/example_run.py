"""The example that tests and goldens share: a small set's run with every outcome."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from proctor_grader.model.result import Cause, ItemResult, Verdict
from proctor_grader.model.task import Capture, TaskClass, TaskId
from proctor_grader.model.unit import DEFAULT_VARIANT, RunId, Stage, unit_id
from proctor_grader.report.summary import HistoryPoint
from tests.make.report import (
    ReportedRun,
    json_lines,
    make_result,
    make_task,
    number_item,
    stage,
    usual_stages,
)

EVIDENCE_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

DOC = """# Net revenue

Sum of `amount` over **paid** orders, without *cancelled* ones.

| month | revenue |
|---|---:|
| 2026-09 | 1,204,311.50 |
| 2026-10 | 1,284,500.20 |

## Pitfalls

1. Refunds are in `raw.refunds`, not in the order.
2. See [the runbook](https://example.com/runbook) and ![a chart](https://example.com/c.png).

```sql
select sum(amount) from marts.fct_orders where status = 'paid'
```
"""
TRANSCRIPT = [
    {"type": "system", "subtype": "init", "model": "claude-sonnet-4-5", "tools": ["sql", "bash"]},
    {"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Paid orders only; refunds live elsewhere."},
        {"type": "text", "text": "I'll look at the orders first."},
        {"type": "tool_use", "id": "c1", "name": "sql", "input": {
            "sql": "select status, count(*), sum(amount)\nfrom marts.fct_orders\ngroup by 1"}},
    ]}},
    {"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": [
            {"type": "text", "text": "paid | 8,112 | 1284500.20\nopen | 311 | 40210.00"}]}]}},
    {"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "c2", "name": "sql", "input": {"sql": "select * from refund"}},
    ]}},
    {"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c2", "is_error": True,
         "content": "relation \"refund\" does not exist"}]}},
    {"type": "result", "subtype": "success", "result": "Net revenue was $1,284,500.20."},
]  # fmt: skip
EVENTS = [
    {"ts": "2026-11-30T09:00:04Z", "tool": "sql", "input": {"sql": "select 1"},
     "result": "1", "is_error": False},
    {"ts": "2026-11-30T09:00:09Z", "tool": "sql", "input": {"sql": "select * from refund"},
     "result": "relation \"refund\" does not exist", "is_error": True},
    {"ts": "2026-11-30T09:00:12Z", "usage": {"tokens": 5120}},
]  # fmt: skip


def small_run(root: Path) -> ReportedRun:
    """Sixteen units with every outcome, the way a set of questions and build tasks looks."""
    run = ReportedRun(root)
    _add_revenue(run)
    _add_rebuild(run)
    _add_misses(run)
    _add_faults(run)
    for name, title, value in (
        ("active_customers", "Customers with an order in the last 90 days", "4,812"),
        ("avg_order_value", "Average order value", "158.35"),
        ("churned_customers", "Customers lost in October", "97"),
        ("delivery_days_p90", "Delivery time, 90th percentile", "6.4"),
        ("new_skus", "Products listed in October", "12"),
        ("open_tickets", "Open support tickets", "311"),
        ("summit_charges", "Charges of the Summit carrier", "360618"),
    ):
        answer = f"The figure is **{value}** as of yesterday."
        item = number_item(answer, value, value=value.replace(",", ""), tolerance="0.05")
        seconds = 6.0 + 2.3 * len(name)
        run.add(
            make_task(name, title=title, tags=("finance", "monthly"), doc=DOC, why=title),
            make_result(name, answer=answer, items=(item,), stages=usual_stages(seconds)),
            {"stdout.log": "done\n"},
        )
    return run


def _add_revenue(run: ReportedRun) -> None:
    answer = (
        "Net revenue was **$1,284,500.20** in October, from 8,112 paid orders.\n\n"
        "Refunds of 40,210.00 are not part of it."
    )
    items = (
        number_item(answer, "$1,284,500.20", value="1284500.2", tolerance="0", name="net_revenue"),
        number_item(answer, "8,112", value="8112", tolerance="0.01", name="paid_orders"),
        number_item(answer, "40,210.00", value="42000", tolerance="0.01", name="refunds"),
    )
    run.add(
        make_task(
            "revenue_october",
            title="Net revenue in October",
            prompt="What was our net revenue in October 2026, and from how many paid orders?\n"
            "Say what was refunded.",
            doc=DOC,
            why="Finance reports this figure to the board; refunds are easily counted in.",
            tags=("finance", "critical"),
            category="revenue",
            covers=("marts.fct_orders", "raw.refunds"),
            gt="1,284,500.20",
        ),
        make_result(
            "revenue_october",
            Verdict.PARTIAL,
            answer=answer,
            items=items,
            stages=usual_stages(48.2),
            usage={"tokens": 5120, "usd": Decimal("0.0312")},
            details={"numbers_read": 4},
            evidence={
                run.keys.attempt(unit_id(TaskId("revenue_october")), 1).agent_file(
                    "answer.txt"
                ): EVIDENCE_DIGEST
            },
        ),
        {
            "transcript.jsonl": json_lines(TRANSCRIPT),
            "events.jsonl": json_lines(EVENTS),
            "stdout.log": "connecting to postgresql://agent:s3cr3t-pass@db:5432/b\nready\n",
            "stderr.log": "warning: 1 deprecated call\n",
        },
    )


def _add_rebuild(run: ReportedRun) -> None:
    task = make_task(
        "rebuild_fct_orders",
        title="Rebuild fct_orders from raw",
        kind="build",
        task_class=TaskClass.WRITE,
        prompt="Build marts.fct_orders, one row per order.",
        builds=("marts.fct_orders",),
        capture=Capture(("marts.fct_orders",)),
        setup="scripts/drop_orders.sh",
        teardown="scripts/clean.sh",
    )
    result = make_result(
        task.id,
        Verdict.OFF,
        answer="Built it.",
        items=(
            ItemResult("exists", True, "table marts.fct_orders"),
            ItemResult("row_count", True, "8,423 rows, expected 8,423"),
            ItemResult("grain", False, "8,423 rows, 8,112 distinct combinations of (order_id)"),
            ItemResult("columns", True, "all of order_id, amount, status"),
        ),
        captures={
            "marts.fct_orders": {
                "exists": True,
                "row_count": 8423,
                "columns": {
                    "order_id": {"type": "INTEGER", "nulls": 0, "sum": "35481102"},
                    "amount": {"type": "DECIMAL(12,2)", "nulls": 3, "sum": "1324710.20"},
                    "status": {"type": "VARCHAR", "nulls": 0},
                },
                "grain": {"key": ["order_id"], "distinct": 8112, "unique": False},
            }
        },
        stages={
            Stage.BRANCH.value: stage(0.4),
            Stage.SETUP.value: stage(3.2, at=0.5),
            Stage.AGENT.value: stage(95.0, at=3.8),
            Stage.GRADE.value: stage(0.3, at=99.0),
            Stage.TEARDOWN.value: stage(
                1.2, at=99.5, ok=False, reason="ScriptFailed", exit_code=1, message="exit code 1"
            ),
            Stage.DROP.value: stage(0.2, at=101.0),
        },
    )
    logs = {Stage.SETUP: "dropped 1 table\n", Stage.TEARDOWN: "rm: no such file\n"}
    run.add(task, result, {"stdout.log": "dbt run\nCompleted successfully\n"}, logs)
    run.capture(
        result,
        "marts.fct_orders",
        "SELECT (1000 + range)::VARCHAR AS order_id, CASE WHEN range % 7 = 0 THEN NULL ELSE "
        "(range * 13.5)::VARCHAR END AS amount, 'paid' AS status FROM range(8423)",
    )


def _add_misses(run: ReportedRun) -> None:
    answer = "Roughly 9.1 million euro of stock lies in Rotterdam."
    run.add(
        make_task("stock_value", title="Stock value by warehouse"),
        make_result(
            "stock_value",
            Verdict.OFF,
            answer=answer,
            items=(
                number_item(
                    answer,
                    "9.1 million",
                    value="8134220.75",
                    tolerance="0.05",
                    got=Decimal("9.1E+6"),
                ),
            ),
            stages=usual_stages(20.4),
        ),
    )
    run.add(
        make_task("net_margin", title="Net margin of the spring campaign"),
        make_result(
            "net_margin",
            Verdict.UNKNOWN,
            answer="I could not find a campaign of that name.",
            items=(number_item("", None, value="-12500.5", tolerance="0.1"),),
            stages=usual_stages(31.0),
        ),
    )
    answer = "There were 3 failed payments."
    run.add(
        make_task("failed_payments", title="Failed payments that nobody retried"),
        make_result(
            "failed_payments",
            Verdict.OFF,
            answer=answer,
            items=(number_item(answer, "3", value="0"),),
            stages=usual_stages(8.0),
        ),
    )
    run.add(
        make_task("long_haul", title="Longest delivery route"),
        make_result(
            "long_haul",
            Verdict.ERROR,
            cause=Cause.AGENT,
            reason="AgentTimeout",
            message="agent: ran out of time (600 s) and left no answer",
            answer=None,
            items=(),
            stages=usual_stages(
                600.0, ok=False, timed_out=True, signal=9, reason="AgentTimeout",
                message="ran out of time (600 s)",
            ),
        ),
    )  # fmt: skip


def _add_faults(run: ReportedRun) -> None:
    run.add(
        make_task("supplier_terms", title="Average payment term", task_class=TaskClass.WRITE),
        make_result(
            "supplier_terms",
            Verdict.SETUP_FAILED,
            cause=Cause.SET,
            reason="SetupFailed",
            message="setup: scripts/load.sh ended with exit code 2",
            answer=None,
            items=(),
            stages={
                Stage.BRANCH.value: stage(0.2),
                Stage.SETUP.value: stage(2.0, at=0.3, ok=False, exit_code=2, reason="SetupFailed"),
                Stage.DROP.value: stage(0.1, at=2.4),
            },
        ),
        logs={Stage.SETUP: 'psql: error: relation "terms" already exists\n'},
    )
    run.add(
        make_task("warehouse_map", title="Map of warehouses", criteria=()),
        make_result(
            "warehouse_map",
            Verdict.UNGRADED,
            cause=Cause.SET,
            reason="NothingToGrade",
            message="the task has no checks",
            answer="Rotterdam, Gdansk and Porto.",
            items=(),
            stages=usual_stages(5.0),
        ),
    )
    run.add(
        make_task("year_end", title="Year-end accruals"),
        make_result(
            "year_end",
            Verdict.CANCELLED,
            reason="Cancelled",
            message="the run was cancelled before the unit was started",
            attempt=0,
            answer=None,
            items=(),
            stages={},
        ),
    )


HISTORY = [
    HistoryPoint(
        RunId(f"run-202611{day:02d}-070000-00000{day % 10}"),
        f"2026-11-{day:02d}T07:00:00+00:00",
        {DEFAULT_VARIANT: None if accuracy is None else Decimal(accuracy)},
    )
    for day, accuracy in ((2, "38.46"), (9, "46.15"), (16, None), (20, "53.33"), (27, "60.00"))
]
COVERAGE = {
    "declared": ["fct_orders", "refunds", "stg_orders"],
    "models_total": 14,
    "models_covered": 3,
    "pct": Decimal("21.4"),
    "by_layer": {
        "staging": {"total": 6, "covered": 1, "pct": Decimal("16.7")},
        "marts": {"total": 5, "covered": 2, "pct": Decimal("40.0")},
        "other": {"total": 3, "covered": 0, "pct": Decimal("0.0")},
    },
    "marts_pct": Decimal("40.0"),
}
NOTICES = (
    "Agents ran without a sandbox (--sandbox none): they could read this machine's files.",
    "PUBLIC may connect to database 'analytics', which was tolerated (--isolation warn).",
)
