"""`python -m proctor_operator.cli` is `proctor`."""

from proctor_operator.cli.app import main

main()
