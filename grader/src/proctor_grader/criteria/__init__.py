"""How a unit's evidence is judged: one family of criteria each, independent of each other."""
