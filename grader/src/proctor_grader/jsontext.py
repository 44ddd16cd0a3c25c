"""JSON text with exact decimals: the one place that reads and writes JSON for people and stores."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import simplejson


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON text; Decimals keep their exact digits, NaN is refused with ValueError."""
    return str(
        simplejson.dumps(
            value, use_decimal=True, ensure_ascii=False, allow_nan=False, indent=indent
        )
    )


def dump_bytes(value: Any, *, indent: int | None = None) -> bytes:
    """Return JSON as UTF-8, ended by a line feed; unpaired surrogates are replaced."""
    return (dump_json(value, indent=indent) + "\n").encode("utf-8", "replace")


def load_json(text: str | bytes) -> Any:
    """Read JSON that Proctor wrote; fractions come back as Decimal.

    Raises:
        ValueError: the text is no JSON.
    """
    return simplejson.loads(text, parse_float=Decimal)
