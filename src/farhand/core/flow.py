"""Which kinds of data a run has brought together. Private data, strangers' words and a way out make a leak."""

from collections.abc import Set

from farhand.core.call import Call
from farhand.core.definition import Definition, Place
from farhand.core.scene import OWNER

PRIVATE, UNTRUSTED = "private", "untrusted"


def source_of(definition: Definition) -> str:
    """Whose word its results are; empty: the agent's own server's. Who writes a tool down may leave it to others."""
    if definition.source != OWNER:
        return definition.source
    return "" if definition.place is Place.SERVER else str(definition.place)


def touches(call: Call, definition: Definition) -> tuple[str, ...]:
    """What the model is told with the result of a call. Whatever comes from elsewhere is somebody else's word."""
    untrusted = (UNTRUSTED,) if call.source or definition.policy.takes_untrusted else ()
    return (PRIVATE, *untrusted) if definition.policy.reads_private else untrusted


def is_leak(touched: Set[str], call: Call, definition: Definition) -> bool:
    """Whether this call could carry private data out because a stranger said so."""
    return definition.policy.sends_out and {*touched, *touches(call, definition)} >= {PRIVATE, UNTRUSTED}
