"""Numeric checks: is a number in the answer within the tolerance of each gold? Pure and exact.

Source: spec/numbers.md, section 9.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation, Overflow
from typing import TYPE_CHECKING, Final, NamedTuple

from proctor_grader.model.criterion import NumberCriterion
from proctor_grader.model.result import Verdict
from proctor_grader.numerals import Numeral, Skipped, extract_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_NAME: Final = "answer"
ZERO_MARGIN: Final = Decimal("0.000000001")
"""How far from 0 a number may be to pass a check for 0."""

_EXACT = Context(
    prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, Overflow]
)
"""Holds every digit of a difference or product, whatever the ambient context says."""

_MAX_MAGNITUDE = 308
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
