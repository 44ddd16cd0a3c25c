"""Results -> files people and programs read: HTML report, parquet, JSON lines, JUnit, diff.

Nothing here decides a verdict. Every text of an agent or a set is untrusted: it reaches a page
only through the one template environment, which redacts, makes visible and escapes.
"""
