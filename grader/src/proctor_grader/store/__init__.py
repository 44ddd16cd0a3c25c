"""Where sets, plans, evidence, results and reports lie."""
