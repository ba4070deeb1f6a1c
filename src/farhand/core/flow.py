"""Which kinds of data a run has brought together. Private data, strangers' words and a way out make a leak."""

from farhand.core.call import Call
from farhand.core.definition import Definition

PRIVATE, UNTRUSTED = "private", "untrusted"


def touches(call: Call, definition: Definition) -> frozenset[str]:
    """What the model is told with the result of a call. Whatever comes from elsewhere is somebody else's word."""
    found = {PRIVATE} if definition.policy.reads_private else set[str]()
    if definition.policy.takes_untrusted or call.source:
        found.add(UNTRUSTED)
    return frozenset(found)


def is_leak(touched: frozenset[str], call: Call, definition: Definition) -> bool:
    """Whether this call could carry private data out because a stranger said so."""
    return definition.policy.sends_out and touched | touches(call, definition) >= {PRIVATE, UNTRUSTED}
