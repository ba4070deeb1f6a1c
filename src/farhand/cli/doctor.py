"""`farhand doctor`: what is installed, reachable and misconfigured, and what to do about it."""

from typing import Annotated

from cyclopts import Parameter

from farhand.cli.exits import Exit
from farhand.cli.options import NOBODY, Json, Who
from farhand.cli.output import write, write_json


def doctor(
    server: str = "",
    /,
    *,
    store: Annotated[str, Parameter(env_var="FARHAND_STORE")] = "",
    who: Who = NOBODY,
    as_json: Json = False,
) -> Exit:
    """Look for what is wrong, and say what to do.

    Parameters
    ----------
    server
        The URL of a server to look at as well; without it, $FARHAND_URL.
    store
        A store to look at as well; without it, farhand.db of this folder, if there is one.
    """
    from farhand.cli.checkup import checkup
    from farhand.cli.finding import Health

    found = checkup(server, store, who)
    broken = any(check.health is Health.BROKEN for check in found)
    if as_json:
        write_json({"ok": not broken, "checks": found})
    for check in () if as_json else found:
        write(f"{check.sign} {check.name + ':':<10}{check.said}")
        if check.fix:
            write(f"  {'':<10}{check.fix}")
    return Exit.NO if broken else Exit.OK
