"""The planner: what is known goes in, what to do next comes out. No I/O, no clock, no chance.

Both executors obey it; neither knows policy.
"""
