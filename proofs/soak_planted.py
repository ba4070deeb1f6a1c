"""Each fault of `soak_bugs` is planted in the workers of short soaks, until it is found as what it is.

`python -m proofs.soak_planted` ends with 1 if one is not found.
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from proofs.soak import Settings, soak


class Planted(Struct, frozen=True):
    """How a fault shows, and how many of the workers have to be frozen instead of killed for it."""

    seen_as: str
    freezes: float = 0.0


PLANTED: Mapping[str, Planted] = {
    "acknowledge-early": Planted("was accepted 2 times"),
    "dispatch-again": Planted("once entered twice"),
    "forget-epoch": Planted("once entered twice", freezes=0.7),
}
SOAKS = 5
"""Within which each has to be found."""
CYCLES = 8


async def find(bug: str, folder: Path) -> str:
    """What was found of a fault; empty if it was not."""
    planted = PLANTED[bug]
    for seed in range(SOAKS):
        place = folder / f"{bug}-{seed}"
        place.mkdir()
        settings = Settings(
            cycles=CYCLES,
            store=f"sqlite:{place}/runs.db",
            folder=place,
            seed=seed,
            freezes=planted.freezes,
            bug=bug,
        )
        found = [broken for broken in (await soak(settings)).broken if planted.seen_as in broken]
        if found:
            return found[0]
    return ""


def main() -> int:
    """Plant all of them."""
    missed = 0
    with tempfile.TemporaryDirectory(prefix="farhand-planted-") as folder:
        for bug in PLANTED:
            found = asyncio.run(find(bug, Path(folder)))
            missed += not found
            sys.stdout.write(f"{bug:<20} {found[:100] or f'NOT FOUND in {SOAKS} soaks'}\n")
    sys.stdout.write(f"{len(PLANTED) - missed} of {len(PLANTED)} planted faults found by the soak\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
