"""`python -m proofs.spin [--long]`: let spin walk through `call.pml`, and through each error that is planted in it.

A check compiles the model with its switches in a folder of its own and runs the checker that comes out. See README.md
in this folder for what the model says.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MODEL = Path(__file__).with_name("call.pml")
INSTALL = "apt-get install spin gcc"
DEPTH = 10_000


class CheckFailed(Exception):
    """Spin came to no verdict: a program is missing, the model is wrong, or time or memory did not last."""


@dataclass(frozen=True)
class Check:
    """One question to spin: the model with these switches. `at_rest` asks if it ever goes round in a circle."""

    name: str
    switches: tuple[str, ...]
    at_rest: bool = False
    seconds: int = 900
    megabytes: int = 1900
    big: bool = False
    """Whether a fast checker is worth the time to compile it."""


@dataclass(frozen=True)
class Verdict:
    """What spin found: the first error or none, in how many states, and which lines no state came to.

    Lines are asked about only where both kinds of trouble are let in.
    """

    check: Check
    error: str
    states: int
    seconds: float
    megabytes: float
    unreached: tuple[str, ...]


def shape(*, server: bool, crashes: int, freezes: int, people: int = 1) -> tuple[str, ...]:
    """The switches of a bound: how much trouble, how many people, and where the second call is."""
    bounds = (f"CRASHES={crashes}", f"FREEZES={freezes}", f"PEOPLE={people}")
    return (*bounds, "SECOND_ON_SERVER") if server else bounds


CLIENT = shape(server=False, crashes=1, freezes=1)
SERVER = shape(server=True, crashes=1, freezes=1)
CRASH = shape(server=False, crashes=1, freezes=0)

SHORT = (
    Check("client call, 1 crash, 1 freeze", CLIENT, big=True),
    Check("server call, 1 crash", shape(server=True, crashes=1, freezes=0)),
)
LONG = (
    Check("server call, 2 crashes, 2 freezes", shape(server=True, crashes=2, freezes=2), big=True),
    Check("client call, 2 crashes, 2 freezes", shape(server=False, crashes=2, freezes=2), big=True),
    Check("client call, 1 crash, 1 freeze, comes to rest", CLIENT, at_rest=True, big=True),
    Check("client call, 1 crash, 2 people", shape(server=False, crashes=1, freezes=0, people=2), big=True),
    Check("server call, 1 crash, 2 people", shape(server=True, crashes=1, freezes=0, people=2), big=True),
)


def planted(prefix: str) -> tuple[str, ...]:
    """The switches of the model that begin with `prefix`."""
    return tuple(sorted(set(re.findall(rf"\b{prefix}_[A-Z_]*[A-Z]\b", MODEL.read_text()))))


# These can only be met when both calls are on the server.
ON_SERVER = frozenset(
    {
        "BUG_HASH_NOT_CHECKED_AT_DISPATCH",
        "SEES_AN_APPROVAL_OF_OTHER_ARGUMENTS",
        "SEES_A_FOREIGN_DISPATCH",
        "SEES_A_SECOND_ATTEMPT",
    }
)


# These come from a crash alone, and are found sooner when nothing else goes wrong.
BY_CRASH = frozenset({"BUG_ONCE_DISPATCHED_AGAIN", "SEES_A_BODY_ENTERED_AND_ITS_HOLDER_GONE"})


def finding(switch: str) -> Check:
    """The check that has to end with an error: a planted bug, or something that the model has to come to."""
    shaped = SERVER if switch in ON_SERVER else CRASH if switch in BY_CRASH else CLIENT
    return Check(switch, (*shaped, switch))


BUGS = tuple(finding(switch) for switch in planted("BUG"))
SIGHTS = tuple(finding(switch) for switch in planted("SEES"))


def run(check: Check) -> Verdict:
    """Compile and run one check; `CheckFailed` when there is no verdict."""
    spin, compiler = _program("spin"), _program("cc")
    with tempfile.TemporaryDirectory(prefix="farhand-spin-") as folder:
        place = Path(folder)
        shutil.copy(MODEL, place)
        _call([spin, *(f"-D{switch}" for switch in check.switches), "-a", MODEL.name], place, check.seconds)
        options = [
            f"-DMEMLIM={check.megabytes}",
            "-DNP" if check.at_rest else "-DSAFETY",
            "-O2" if check.big else "-O0",
        ]
        _call([compiler, *options, "-o", "pan", "pan.c"], place, check.seconds)
        rest = ["-l"] if check.at_rest else []
        said = _call([str(place / "pan"), f"-m{DEPTH}", "-w22" if check.big else "-w16", *rest], place, check.seconds)
    return _read(check, said)


def run_all(checks: Iterable[Check], tell: Callable[[Verdict], None]) -> list[Verdict]:
    """Run checks side by side, and tell of each in their order."""
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict in pool.map(run, checks):
            tell(verdict)
            verdicts.append(verdict)
    return verdicts


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise CheckFailed(f"`{name}` is not installed: {INSTALL}")
    return path


def _call(command: list[str], place: Path, seconds: int) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are this module's own
            command, cwd=place, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(f"{Path(command[0]).name} took more than {seconds} s") from error
    if done.returncode:
        raise CheckFailed(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _read(check: Check, said: str) -> Verdict:
    error = re.search(r"^pan:1: (.*)$", said, re.MULTILINE)
    # The states of a search for circles are counted once, whatever else is remembered with them.
    states = re.search(r"^\s*(\d+) states, stored", said, re.MULTILINE)
    seconds = re.search(r"elapsed time ([\d.]+) seconds", said)
    megabytes = re.search(r"([\d.]+)\s+total actual memory usage", said)
    if states is None or seconds is None or megabytes is None or "errors: " not in said:
        raise CheckFailed(f"pan did not finish:\n{said}")
    if error is None and ("Search not completed" in said or "search depth too small" in said):
        raise CheckFailed(f"pan did not see every state:\n{said}")
    unreached = tuple(
        f"{line}: {what}"
        for line, what in re.findall(r"^\t\S*call\.pml:(\d+), state \d+, \"(.*)\"$", said, re.MULTILINE)
        if what != "-end-"
    )
    troubled = not {"CRASHES=0", "FREEZES=0"} & set(check.switches)
    return Verdict(
        check,
        error[1] if error else "",
        int(states[1]),
        float(seconds[1]),
        float(megabytes[1]),
        unreached if error is None and troubled else (),
    )


def _line(verdict: Verdict, *, clean: bool) -> str:
    good = _is_good(verdict, clean=clean)
    word = ("found" if verdict.error else "NOT FOUND") if not clean else (verdict.error or "no error")
    if clean and verdict.unreached:
        word = f"never reached: {'; '.join(verdict.unreached)}"
    mark = "  " if good else "! "
    figures = f"{verdict.states:>12,} states {verdict.seconds:>7.2f} s {verdict.megabytes:>7.0f} MB"
    return f"{mark}{verdict.check.name:<52} {word:<10} {figures}\n"


def _is_good(verdict: Verdict, *, clean: bool) -> bool:
    return (not verdict.error and not verdict.unreached) if clean else bool(verdict.error)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.spin", description="Check the model of the call protocol.")
    parser.add_argument("--long", action="store_true", help="the full bounds: a minute or two")
    given = parser.parse_args()
    good = True
    try:
        for title, checks, clean in (
            ("The model", LONG if given.long else SHORT, True),
            ("Planted bugs", BUGS, False),
            ("Seen on the way", SIGHTS, False),
        ):
            sys.stdout.write(f"{title}\n")
            verdicts = run_all(checks, lambda verdict, clean=clean: _tell(_line(verdict, clean=clean)))
            held = sum(_is_good(verdict, clean=clean) for verdict in verdicts)
            good = good and held == len(verdicts)
            _tell(f"{held} of {len(verdicts)} as they should be: {title.lower()}\n")
    except CheckFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0 if good else 1


def _tell(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
