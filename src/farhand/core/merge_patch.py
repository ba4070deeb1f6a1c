"""JSON merge patch (RFC 7396): members of a patch are put into a value, and what the patch calls null is left out.

It knows nothing of who may change what, and of how large a value may become.
"""

from collections.abc import Mapping
from typing import cast

from farhand.core.errors import UsageError
from farhand.core.strict_json import MAX_DEPTH


class PatchTooDeep(UsageError):
    """A patch with more objects inside objects than are followed."""

    code = "patch_too_deep"

    def __init__(self, depth: int) -> None:
        super().__init__(f"the patch has more than {depth} levels of objects")


def merge_patch(target: object, patch: object, *, max_depth: int = MAX_DEPTH) -> object:
    """The value that the patch makes of `target`, or PatchTooDeep.

    Neither of the two is changed. What is as it was is not copied: the result has it in common with them.
    """
    return _merged(target, patch, max_depth, max_depth)


def _merged(target: object, patch: object, left: int, most: int) -> object:
    if not isinstance(patch, Mapping):
        return patch
    if not left:
        raise PatchTooDeep(most)
    # What is no object has no members to keep, and gives way to one.
    merged = dict(cast("Mapping[str, object]", target)) if isinstance(target, Mapping) else {}
    for key, value in cast("Mapping[str, object]", patch).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value, left - 1, most)
    return merged
