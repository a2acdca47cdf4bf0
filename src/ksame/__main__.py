"""``python -m ksame``: the command line."""

from ksame.app.cli import main

main()
