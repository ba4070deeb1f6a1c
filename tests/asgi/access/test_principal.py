"""Who is asking, and what they may do."""

import pytest

from farhand.asgi.access.principal import EVERYTHING, PUBLIC, SCOPES, USUAL, Principal, authorise
from farhand.core.errors import InvalidInput, NotAllowed, NotAuthenticated

ANN = Principal("ann")


def test_a_principal_of_whom_nothing_is_said_may_do_all_but_operate() -> None:
    assert ANN.scopes == USUAL == {"chat", "answer", "approve"}


@pytest.mark.parametrize("action", SCOPES)
def test_an_action_is_open_to_its_own_scope_and_to_no_other(action: str) -> None:
    authorise(Principal("ann", frozenset({action})), action)
    with pytest.raises(NotAllowed, match=action):
        authorise(Principal("ann", EVERYTHING - {action}), action)


@pytest.mark.parametrize("action", ["", "chat ", "CHAT", "admin", "*", "publi"])
def test_an_unknown_action_is_refused_to_everybody(action: str) -> None:
    with pytest.raises(NotAllowed):
        authorise(Principal("root", EVERYTHING), action)


def test_what_is_public_is_open_to_everybody() -> None:
    authorise(None, PUBLIC)
    authorise(ANN, PUBLIC)


@pytest.mark.parametrize("action", [*SCOPES, "admin"])
def test_nobody_may_do_anything_that_is_not_public(action: str) -> None:
    with pytest.raises(NotAuthenticated):
        authorise(None, action)


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "\x1b[31mann", "a" * 257])
def test_an_id_that_cannot_be_shown_is_no_id(name: str) -> None:
    with pytest.raises(InvalidInput, match="printable"):
        Principal(name)


def test_a_scope_that_there_is_not_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"no scope 'admin'; there are chat, answer, approve, operate"):
        Principal("ann", frozenset({"chat", "admin"}))
