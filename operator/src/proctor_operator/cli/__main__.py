"""`python -m proctor_operator.cli` is `proctor`."""

from proctor_operator.cli.app import main

if __name__ == "__main__":
    main()
