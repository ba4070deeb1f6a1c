"""One command line from its words to its exit code. Whatever goes wrong is one line on the standard error."""

import io
import os
import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from farhand.cli.app import app
from farhand.cli.exits import Exit, Said, said

DEBUG = "--debug"


def run(words: Sequence[str]) -> int:
    """Do what the words say; gives the exit code. With `--debug` errors are raised, for whoever mends them."""
    words, debug = _without_debug(words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what others wrote must not fail for its letters
    try:
        ended = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read this has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except SystemExit:
        raise
    except CycloptsError as error:
        return _tell(_usage(error), words)
    except BaseException as error:
        if debug:
            raise
        if isinstance(error, KeyboardInterrupt):
            return Exit.INTERRUPTED
        return _tell(said(error), words)
    return ended if isinstance(ended, int) else Exit.OK


def _tell(what: Said, words: Sequence[str]) -> int:
    print(what.json() if "--json" in words else what.line(), file=sys.stderr)
    return what.exit


def _usage(error: CycloptsError) -> Said:
    command = " ".join(("farhand", *(error.command_chain or ())))
    text = " ".join(str(error).split())
    return Said(code="usage", detail=text, fix=f"see `{command} --help`", exit=Exit.USAGE)


def _without_debug(words: Sequence[str]) -> tuple[Sequence[str], bool]:
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != DEBUG]
    return [*kept, *words[end:]], len(kept) < end
