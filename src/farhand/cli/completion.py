"""`farhand completion`: a script with which a shell completes commands and options."""

from typing import Literal

SHELLS = Literal["bash", "zsh", "fish"]


def completion(shell: SHELLS, /) -> None:
    """Print a script with which a shell completes the words of `farhand`.

    Parameters
    ----------
    shell
        For which shell.
    """
    from farhand.cli.app import app

    print(app.generate_completion(shell=shell))
