"""The command `farhand`, one command a file. What the commands need beside the library is the extra `cli`."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from farhand.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("cyclopts", "rich"):
            raise
        sys.exit("the command line needs two more packages: pip install 'farhand[cli]'")
    app()
