"""Sandboxes with real agents: ordinary ones, and hostile ones."""
