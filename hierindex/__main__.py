"""Runs the command line as `python -m hierindex`."""

from hierindex.cli.app import main

if __name__ == "__main__":
    main()
