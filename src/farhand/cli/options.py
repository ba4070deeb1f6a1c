"""Options that several commands have, each with its one help text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

Json: TypeAlias = Annotated[bool, Parameter(name="--json", negative="", help="Write JSON, for programs.")]
JsonText: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""JSON as it is typed: a negative number is no option, and neither is `-`."""
Server: TypeAlias = Annotated[
    str, Parameter(help="URL of the server; it may end in #token=…, as the server prints it.")
]
Where: TypeAlias = Annotated[str, Parameter(help="An agent of this machine, `module:name`, or the URL of a server.")]


@dataclass(frozen=True, kw_only=True)
class Login:
    """Who asks, for servers."""

    token: str = ""
    """Who you are to the server. Others on this machine can see it here; better in $FARHAND_TOKEN or in a file."""

    token_file: Path | None = None
    """A file with the token and nothing else, or $FARHAND_TOKEN_FILE."""


Who: TypeAlias = Annotated[Login, Parameter(name="*")]
NOBODY: Final = Login()
