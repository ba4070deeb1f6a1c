"""`python -m farhand`: the command line, where its command is not on the path."""

from farhand.cli import main

main()
