"""Who is known to the server of the served cases. Standard library only."""

GOOD = 50
BAD = 1100


def token(name: str) -> str:
    return f"{name}-{'t' * 24}"


NAMES = [*(f"good{number}" for number in range(GOOD)), *(f"bad{number}" for number in range(BAD))]
TOKENS = {token(name): name for name in NAMES}
