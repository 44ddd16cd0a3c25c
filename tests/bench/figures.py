"""What a measurement comes to: figures, ratios, and bars that they must hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bar:
    """A budget: the value may be `limit` at most."""

    name: str
    value: float
    limit: float
    unit: str = ""
    is_judged: bool = True

    @property
    def ok(self) -> bool:
        return not self.is_judged or self.value <= self.limit

    def to_json(self) -> dict[str, Any]:
        document = {
            "name": self.name,
            "value": rounded(self.value),
            "limit": self.limit,
            "unit": self.unit,
            "ok": self.ok,
        }
        if not self.is_judged:
            document["note"] = "not judged: other processes kept the machine busy meanwhile"
        return document


@dataclass
class Findings:
    """Of one measurement; figures are in the unit that their name ends with."""

    figures: dict[str, Any] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    bars: list[Bar] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(bar.ok for bar in self.bars)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "figures": {name: rounded(value) for name, value in self.figures.items()},
            "ratios": {name: rounded(value) for name, value in self.ratios.items()},
            "bars": [bar.to_json() for bar in self.bars],
        }


def rounded(value: Any) -> Any:
    """Three digits that mean something."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return float(f"{value:.3g}") if isinstance(value, float) and abs(value) < 1000 else value
