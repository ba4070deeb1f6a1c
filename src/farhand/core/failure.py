"""Why a call or a run went wrong, as a value that is stored, sent and told to the model. Exceptions are in `errors`."""

from typing import Any

from msgspec import Struct

from farhand.core.problem import Problem


class Failure(Struct, frozen=True, gc=False, omit_defaults=True):
    """One reason: a stable `code` for programs, a `message` for people and models, and where it lies."""

    code: str
    message: str
    path: str = ""
    retryable: bool = False
    details: Any = None
    problems: tuple[Problem, ...] = ()
