"""A finished run as JUnit XML, the form in which CI systems read test results.

One `testcase` per unit: passed, `failure` (failed), `error` (error), `skipped` (ungraded and
cancelled). Texts are made valid XML whatever they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from proctor_grader.model.result import Outcome
from proctor_grader.model.unit import DEFAULT_VARIANT
from proctor_grader.report.display import excerpt, one_line, shown
from proctor_grader.report.unit_text import explanation, item_line, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from proctor_grader.model.result import UnitResult
    from proctor_grader.model.run import RunRecord

_MESSAGE_SHOWN = 400
_TEXT_SHOWN = 4_000
_ELEMENTS = {
    Outcome.FAILED: "failure",
    Outcome.ERROR: "error",
    Outcome.UNGRADED: "skipped",
    Outcome.CANCELLED: "skipped",
}


def render_junit(record: RunRecord, results: Iterable[UnitResult]) -> str:
    """Return the whole document; `junit_lines` gives the same without holding it in memory."""
    return "".join(junit_lines(record, results))


def write_junit(path: Path, record: RunRecord, results: Iterable[UnitResult]) -> None:
    """Write the document to a file in constant memory."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(junit_lines(record, results))


def junit_lines(record: RunRecord, results: Iterable[UnitResult]) -> Iterator[str]:
    """Yield the document piece by piece; the counts at its head are the record's totals."""
    every = record.totals.values()
    counts = {
        "tests": sum(totals.total for totals in every),
        "failures": sum(totals.failed for totals in every),
        "errors": sum(totals.error for totals in every),
        "skipped": sum(totals.ungraded + totals.cancelled for totals in every),
    }
    numbers = " ".join(f'{name}="{count}"' for name, count in counts.items())
    head = f'{numbers} time="{record.seconds:.3f}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites name={_attribute(record.set_name)} {head}>\n"
    yield f"<testsuite name={_attribute(record.set_name)} {head}"
    yield f" timestamp={_attribute(record.started_at)}>\n"
    yield from _properties(record)
    for result in results:
        yield from _testcase(record, result)
    yield "</testsuite>\n</testsuites>\n"


def _properties(record: RunRecord) -> Iterator[str]:
    known = {
        "run": record.id,
        "commit": record.commit,
        "fingerprint": record.fingerprint.found or "",
        "warehouse": record.warehouse,
        "passed": "" if record.passed is None else str(record.passed).lower(),
    }
    yield "<properties>\n"
    for name, value in known.items():
        if value:
            yield f"<property name={_attribute(name)} value={_attribute(value)}/>\n"
    yield "</properties>\n"


def _testcase(record: RunRecord, result: UnitResult) -> Iterator[str]:
    variant = "" if result.variant == DEFAULT_VARIANT else f".{result.variant}"
    trial = "" if result.trial == 1 else f" [trial {result.trial}]"
    yield f"<testcase classname={_attribute(record.set_name + variant)}"
    yield f' name={_attribute(result.task + trial)} time="{seconds_of(result):.3f}"'
    element = _ELEMENTS.get(result.outcome)
    if element is None:
        yield "/>\n"
        return
    yield ">\n"
    message = one_line(explanation(result) or result.verdict.value, _MESSAGE_SHOWN)
    if element == "skipped":
        yield f"<skipped message={_attribute(f'{result.verdict.value}: {message}')}/>\n"
    else:
        yield f"<{element} type={_attribute(result.verdict.value)} message={_attribute(message)}>"
        yield f"{escape(shown(_details(result)))}</{element}>\n"
    yield "</testcase>\n"


def _details(result: UnitResult) -> str:
    lines = [f"verdict: {result.verdict.value}"]
    if result.cause is not None:
        lines.append(f"cause: {result.cause.value}")
    if result.reason:
        lines.append(f"reason: {result.reason}")
    if result.message:
        lines.append(excerpt(result.message, _MESSAGE_SHOWN))
    lines += [excerpt(item_line(item), _MESSAGE_SHOWN) for item in result.items]
    if result.answer is not None:
        lines.append(f"final answer: {excerpt(result.answer, _TEXT_SHOWN)}")
    return "\n".join(lines)


def _attribute(text: str) -> str:
    return quoteattr(shown(text))
