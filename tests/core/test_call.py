"""The table of a call: which moves there are, and that there are no others."""

import pytest

from farhand.core.call import ENDED, TABLE, Call, CallState, Change, Outcome, move, settle
from farhand.core.errors import IllegalChange


def call(state: CallState) -> Call:
    return Call("c1", "label", "t", 1, state=state)


def test_there_are_the_eight_public_states() -> None:
    assert [state.value for state in CallState] == [
        "awaiting-input",
        "input-streaming",
        "input-complete",
        "approval-requested",
        "executing",
        "output-available",
        "output-error",
        "cancelled",
    ]


@pytest.mark.parametrize("state", list(CallState))
@pytest.mark.parametrize("change", list(Change))
def test_a_call_moves_by_the_table_and_not_otherwise(state: CallState, change: Change) -> None:
    if change in TABLE[state]:
        assert move(call(state), change).state is TABLE[state][change]
    else:
        with pytest.raises(IllegalChange):
            move(call(state), change)


def test_three_states_are_the_end_and_nothing_leaves_them() -> None:
    assert {CallState.OUTPUT_AVAILABLE, CallState.OUTPUT_ERROR, CallState.CANCELLED} == ENDED


def test_every_outcome_has_a_change_of_its_name_that_leads_to_an_end() -> None:
    for outcome in Outcome:
        ends = {changes[Change(outcome)] for changes in TABLE.values() if Change(outcome) in changes}
        assert ends
        assert ends <= ENDED


def test_a_call_runs_only_after_its_input_was_complete() -> None:
    assert [state for state, changes in TABLE.items() if Change.DISPATCH in changes] == [CallState.INPUT_COMPLETE]


def test_a_call_succeeds_or_fails_only_while_it_runs() -> None:
    for change in (Change.OK, Change.FAILED, Change.UNKNOWN):
        assert [state for state, changes in TABLE.items() if change in changes] == [CallState.EXECUTING]


def test_settling_takes_deadline_and_back_off_away() -> None:
    running = Call("c1", "label", "t", 1, state=CallState.EXECUTING, deadline=5, not_before=3, judging=True)
    ended = settle(running, Outcome.OK, 9)
    assert not ended.undecided
    assert (ended.deadline, ended.not_before, ended.settled, ended.open) == (None, 0, 9, False)
