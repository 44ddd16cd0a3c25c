"""Exact sums of columns in SQL that neither overflows nor depends on the order of rows. Pure.

Whole numbers and decimals are added exactly. So are floating numbers: each is an integer times a
power of two, so they are added as integers in bins by magnitude and rounded once, at the end.
What fits no bin is fetched and added here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SIGNED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
_INTEGERS = _SIGNED | {f"U{name}" for name in _SIGNED}
_WIDE_INTEGERS = {"HUGEINT", "UHUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_SPLIT = 10**19
# a sum of fewer than 10^11 values of so many digits fits the engine's 38
_NARROW_DIGITS = 27
# a double has 53 bits; 40 exponents a bin leave 2^34 rows until 128 bits overflow
_BIN_EXPONENTS = 40
_BINS = tuple((low, low + _BIN_EXPONENTS) for low in (-47, -7, 33))
_MANTISSA_BITS = 52


class ColumnSum(Protocol):
    """How one column is summed."""

    def expressions(self, column: str) -> tuple[str, ...]:
        """Return aggregates over the column, given as SQL; all are NULL or 0 without values."""
        ...

    def leftover(self, column: str, values: Sequence[int | Decimal | None]) -> str | None:
        """Return a condition for the rows that the aggregates left out; None if there are none."""
        ...

    def total(self, values: Sequence[int | Decimal | None], rest: Iterable[Any]) -> str:
        """Return the sum as plain decimal text.

        Args:
            values: what the expressions gave, for a column with at least one value.
            rest: the column's values in the rows that were left out.
        """
        ...


def sum_of(column_type: str) -> ColumnSum | None:
    """Return how a column of that type is summed; None if it is no number."""
    if column_type in _INTEGERS:
        return _WholeSum()
    if column_type in _WIDE_INTEGERS:
        return _SplitSum(column_type, 0)
    if column_type in _FLOATS:
        return _FloatSum()
    if column_type == "BIGNUM":
        return _FetchedSum()
    decimal = _DECIMAL.fullmatch(column_type)
    if decimal is None:
        return None
    digits, scale = int(decimal[1]), int(decimal[2])
    return _WholeSum() if digits <= _NARROW_DIGITS else _SplitSum("DECIMAL", scale)


@dataclass(frozen=True, slots=True)
class _WholeSum:
    """The engine's own sum cannot overflow."""

    def expressions(self, column: str) -> tuple[str, ...]:
        return (f"system.main.sum({column})",)

    def leftover(self, column: str, values: Sequence[int | Decimal | None]) -> str | None:
        del column, values
        return None

    def total(self, values: Sequence[int | Decimal | None], rest: Iterable[Any]) -> str:
        del rest
        return format(Decimal(values[0] if values[0] is not None else 0), "f")


@dataclass(frozen=True, slots=True)
class _SplitSum:
    """The engine's own sum could overflow: quotients and remainders are added apart."""

    type: str
    scale: int

    def expressions(self, column: str) -> tuple[str, ...]:
        whole, by = column, f"CAST({_SPLIT} AS {self.type})"
        if self.type == "DECIMAL":
            # as text, since no engine type holds the digits of all scales as a whole number
            whole = f"CAST(system.main.replace(CAST({column} AS VARCHAR), '.', '') AS HUGEINT)"
            by = f"CAST({_SPLIT} AS HUGEINT)"
        return tuple(
            f"system.main.sum(CAST({whole} {operator} {by} AS HUGEINT))" for operator in ("//", "%")
        )

    def leftover(self, column: str, values: Sequence[int | Decimal | None]) -> str | None:
        del column, values
        return None

    def total(self, values: Sequence[int | Decimal | None], rest: Iterable[Any]) -> str:
        del rest
        quotients, remainders = (int(value or 0) for value in values)
        unscaled = quotients * _SPLIT + remainders
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return format(Decimal((int(unscaled < 0), digits, -self.scale)), "f")


@dataclass(frozen=True, slots=True)
class _FetchedSum:
    """The engine has no exact sum for the type."""

    def expressions(self, column: str) -> tuple[str, ...]:
        del column
        return ()

    def leftover(self, column: str, values: Sequence[int | Decimal | None]) -> str | None:
        del values
        return f"{column} IS NOT NULL"

    def total(self, values: Sequence[int | Decimal | None], rest: Iterable[Any]) -> str:
        del values
        return str(sum(int(value) for value in rest))


@dataclass(frozen=True, slots=True)
class _FloatSum:
    """Exact, rounded once to the nearest double; the shortest decimal that stands for it."""

    def expressions(self, column: str) -> tuple[str, ...]:
        value = f"CAST({column} AS DOUBLE)"
        sums = tuple(
            f"system.main.sum(CAST(CASE WHEN {_between(value, low, high)}"
            f" THEN {value} * {2.0 ** (_MANTISSA_BITS - low)!r} END AS HUGEINT))"
            for low, high in _BINS
        )
        special = tuple(
            f"system.main.count(*) FILTER ({value} = CAST('{text}' AS DOUBLE))"
            for text in ("nan", "inf", "-inf")
        )
        return (*sums, *special, f"system.main.count(*) FILTER ({_outside(value)})")

    def leftover(self, column: str, values: Sequence[int | Decimal | None]) -> str | None:
        return _outside(f"CAST({column} AS DOUBLE)") if values[-1] else None

    def total(self, values: Sequence[int | Decimal | None], rest: Iterable[Any]) -> str:
        nans, above, below = values[len(_BINS) : -1]
        if nans or (above and below):
            return "nan"
        if above or below:
            return "inf" if above else "-inf"
        exact = sum((Fraction(float(value)) for value in rest), Fraction(0))
        for (low, _), scaled in zip(_BINS, values, strict=False):
            exact += Fraction(int(scaled or 0)) / Fraction(2) ** (_MANTISSA_BITS - low)
        return _rounded(exact)


def _between(value: str, low: int, high: int) -> str:
    magnitude = f"system.main.abs({value})"
    return f"{magnitude} >= {2.0**low!r} AND {magnitude} < {2.0**high!r}"


def _outside(value: str) -> str:
    return (
        f"{value} <> 0 AND system.main.isfinite({value})"
        f" AND NOT ({_between(value, _BINS[0][0], _BINS[-1][1])})"
    )


def _rounded(exact: Fraction) -> str:
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        return "inf" if exact > 0 else "-inf"
    return format(Decimal(repr(nearest)), "f").removesuffix(".0") if nearest else "0"
