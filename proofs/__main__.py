"""`python -m proofs [NAME …]`: every proof in its long form, one after the other; ends with 1 on any problem.

It takes a quarter of an hour on two cores. Each proof is a program of its own, which can be run by itself as well.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[1]
FAR = 1_000_000
"""Where the seeds of the second half of the stories begin."""


class Proof(Struct, frozen=True):
    """Programs that are run side by side, what they prove, and which of their lines say how much of it."""

    name: str
    says: str
    programs: Sequence[str]
    figures: str


PROOFS = (
    Proof(
        "spin",
        "the model of the call protocol has no error",
        ["spin --long"],
        r"^  \S.* no error +\S+ states|^\d+ of \d+ .*",
    ),
    Proof(
        "world",
        "in a simulated world no story breaks a promise",
        ["world --seconds 150", f"world --seconds 150 --first {FAR}"],
        r"^\d+ stories.*",
    ),
    Proof("bugs", "each planted bug is found", ["bugs"], r"^\d+ of \d+ planted.*"),
    Proof(
        "crash-points",
        "a process that dies at any point, and once more at any later point, loses and repeats nothing",
        ["crash_points --store memory --twice 1"],
        r"^\w+: .* of .*",
    ),
    Proof("crash-points-sqlite", "so on SQLite", ["crash_points --store sqlite --twice 9"], r"^\w+: .* of .*"),
    Proof("crash-points-postgres", "so on PostgreSQL", ["crash_points --store postgres --twice 9"], r"^\w+: .* of .*"),
    Proof(
        "soak-sqlite",
        "workers on one file are killed and frozen; nothing accepted is lost, nothing runs twice",
        ["soak --store sqlite --cycles 320"],
        r"^  (?:kills|answers accepted|accepted answers lost|once bodies entered twice).*",
    ),
    Proof(
        "soak-postgres",
        "so on PostgreSQL",
        ["soak --store postgres --cycles 320"],
        r"^  (?:kills|answers accepted|accepted answers lost|once bodies entered twice).*",
    ),
    Proof("soak-planted", "each fault planted in a worker is found", ["soak_planted"], r"^\d+ of \d+ planted.*"),
    Proof("paused", "10,000 paused runs cost no memory and outlive kill -9", ["paused --runs 10000"], r"^\d+ runs.*"),
)


class Result(Struct, frozen=True):
    """What came of a proof."""

    proof: Proof
    good: bool
    seconds: float
    figures: Sequence[str]


def run(proof: Proof) -> Result:
    """Run a proof and pass on what it says."""
    sys.stdout.write(f"\n== {proof.name}: {proof.says}\n")
    sys.stdout.flush()
    began = time.monotonic()
    running = [
        subprocess.Popen(  # noqa: S603 - the programs are this folder's own
            [sys.executable, "-m", *f"proofs.{program}".split()],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for program in proof.programs
    ]
    said = "".join([program.communicate()[0] for program in running])
    sys.stdout.write(said)
    sys.stdout.flush()
    figures = [" ".join(line.split()) for line in said.splitlines() if re.match(proof.figures, line)]
    good = all(program.returncode == 0 for program in running) and bool(figures)
    return Result(proof, good, time.monotonic() - began, figures)


def summary(results: Sequence[Result]) -> str:
    """What was proved, and what was not."""
    lines = ["", "== summary"]
    for result in results:
        lines.append(f"{'ok    ' if result.good else 'FAILED'} {result.proof.name:<22} {result.seconds:>5.0f} s")
        lines += [f"         {figure}" for figure in result.figures]
    failed = [result.proof.name for result in results if not result.good]
    minutes = sum(result.seconds for result in results) / 60
    verdict = f"NOT PROVED: {', '.join(failed)}" if failed else "every proof holds"
    return "\n".join(
        [*lines, f"{len(results) - len(failed)} of {len(results)} in {minutes:.1f} minutes: {verdict}", ""]
    )


def main() -> int:
    """The command."""
    names = [proof.name for proof in PROOFS]
    parser = argparse.ArgumentParser(prog="python -m proofs", description="Every proof in its long form.")
    parser.add_argument("name", nargs="*", help=f"only these: {', '.join(names)}")
    chosen = parser.parse_args().name or names
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"there is no proof {', '.join(unknown)}; there are {', '.join(names)}")
    results = [run(proof) for proof in PROOFS if proof.name in chosen]
    sys.stdout.write(summary(results))
    return int(not all(result.good for result in results))


if __name__ == "__main__":
    sys.exit(main())
