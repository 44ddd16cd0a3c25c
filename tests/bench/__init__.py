"""Numbers against their budgets: `python -m tests.bench [NAME...]`, what `make bench` runs.

Every ratio is measured in one run, in interleaved rounds, so that a slow or busy machine slows
both sides. Prints one JSON document; exit code 1 when a bar fails.
"""
