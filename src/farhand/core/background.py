"""Calls that a client takes on to end them later: the run goes on with that, and the end is news for the model."""

from msgspec import Raw, json, structs

from farhand.core.call import Background, Call, Outcome, settle
from farhand.core.errors import IllegalChange
from farhand.core.events import Accepted, BackgroundEnded, Noted
from farhand.core.messages import Text, UserMessage
from farhand.core.secrets import result_preview
from farhand.core.turn import advance
from farhand.core.work import Work


def accepted(work: Work, event: Accepted) -> None:
    """The call has ended: what it brought about is that a client works on."""
    call = work.call(event.call_id, event.attempt)
    told = {"status": "accepted", "message": event.note or "The work goes on in the background; its end is told later."}
    ended = settle(call, Outcome.OK, work.at, result=Raw(json.encode(told)))
    work.put(structs.replace(ended, background=Background(event.note)))
    advance(work)


def background_ended(work: Work, event: BackgroundEnded) -> None:
    """The work has ended, perhaps long after its run."""
    call = work.calls.get(event.call_id)
    if call is None or call.background is None or call.background.outcome is not None:
        raise IllegalChange(f"nobody works on call {event.call_id!r} in the background")
    ended = structs.replace(
        call.background,
        outcome=event.outcome,
        result=event.result,
        failure=event.failure,
        ended=event.at,
        preview=result_preview(work.run.definition_of(call), event.result) if event.failure is None else "",
    )
    call = structs.replace(call, background=ended)
    work.put(call)
    if work.run.ending is None:
        work.fields["news"] = (*work.run.news, news_of(call))


def noted(work: Work, event: Noted) -> None:
    """Something that belongs to an earlier run of the thread; once is enough."""
    if event.call_id not in work.run.noted:
        work.fields["news"] = (*work.run.news, event.message)
        work.fields["noted"] = (*work.run.noted, event.call_id)


def news_of(call: Call) -> UserMessage:
    """How the model is told of the end."""
    work = call.background
    assert work is not None
    assert work.outcome is not None
    what = f"The background work of your call of '{call.tool}' ({call.id}) has ended. "
    how = bytes(work.result).decode() if work.failure is None else f"{work.outcome}: {work.failure.message}"
    return UserMessage((Text(what + how),), preview=what + work.preview if work.preview else "")
