"""``python -m waypost.cli``: the command line without its script."""

from waypost.cli import main

main()
