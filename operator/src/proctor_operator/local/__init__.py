"""Runs on this machine: state folder, plan, stages, executor, finish, sweep."""
