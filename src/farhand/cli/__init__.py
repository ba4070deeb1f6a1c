"""The command `farhand`, one command a file. What the commands need beside the library is the extra `cli`."""

import importlib
import sys


def main() -> None:
    """Run the command line."""
    try:
        importlib.import_module("rich")  # which is loaded later, where something is shown

        from farhand.cli.line import run
    except ModuleNotFoundError as error:
        if error.name not in ("cyclopts", "rich"):
            raise
        sys.exit("the command line needs two more packages: pip install 'farhand[cli]'")
    sys.exit(run(sys.argv[1:]))
