"""``python -m reticent`` is the command line."""

from reticent.cli.main import main

if __name__ == "__main__":
    main()
