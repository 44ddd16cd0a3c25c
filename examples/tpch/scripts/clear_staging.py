"""Teardown: staging is emptied after every load. Runs after a failed setup too."""

from branch import open_branch

with open_branch() as branch:
    branch.execute("drop schema if exists staging cascade")
    print("staging is gone")
