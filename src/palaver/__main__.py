"""`python -m palaver` is the command `palaver`."""

from palaver.cli import main

main()
