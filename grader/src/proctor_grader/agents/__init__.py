"""Agents: what can be named after `--agent`, one kind a module."""
