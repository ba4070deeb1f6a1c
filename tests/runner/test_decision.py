"""Lasting decisions: kept by principal, bound to a tool's pin, replaced by a later one about the same."""

from farhand import Approve, Deny
from farhand.core.events import Memory, Remember
from farhand.runner.decision import Decisions, remembered

ALLOW = Memory("pin", True)
REFUSE = Memory("pin", False)


def test_what_is_kept_is_the_principals_own() -> None:
    decisions = Decisions()
    decisions.keep("ann", ALLOW)
    assert (decisions.of("ann"), decisions.of("bob")) == ((ALLOW,), ())


def test_a_later_decision_about_the_same_takes_the_place_of_the_earlier_one() -> None:
    decisions = Decisions()
    other = Memory("other", True)
    exact = Memory("pin", True, "hash")
    for memory in (ALLOW, other, exact, REFUSE):
        decisions.keep("ann", memory)
    assert decisions.of("ann") == (other, exact, REFUSE)


def test_forgetting_asks_again_about_everything_and_only_for_that_principal() -> None:
    decisions = Decisions()
    decisions.keep("ann", ALLOW)
    decisions.keep("bob", ALLOW)
    decisions.forget("ann")
    decisions.forget("nobody")
    assert (decisions.of("ann"), decisions.of("bob")) == ((), (ALLOW,))


def test_how_far_a_decision_reaches_is_one_of_two_words_or_nothing() -> None:
    assert (remembered("tool"), remembered("arguments"), remembered(None)) == (Remember.TOOL, Remember.ARGUMENTS, None)


def test_a_decision_says_no_more_than_it_was_told() -> None:
    assert (Approve().payload, Approve().remember, Deny().reason, Deny().remember) == (None, None, "", None)
    assert Approve(arguments=None) != Approve()  # null is an edit, nothing is none
    assert Deny("no") == Deny(reason="no")
