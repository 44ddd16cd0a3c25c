"""Numbers in a text, read as exact decimals. Pure; it knows nothing of tasks and checks."""

from proctor_grader.numerals.numeral import Numbers, Numeral, SkipKind, Skipped, render_decimal
from proctor_grader.numerals.scan import extract_numbers

__all__ = ["Numbers", "Numeral", "SkipKind", "Skipped", "extract_numbers", "render_decimal"]
