"""Whoever looks at a call reads a mask where its tool says that a value is secret. The tool and the model do not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from farhand.core import answers
from farhand.core.background import news_of
from farhand.core.call import Outcome
from farhand.core.definition import Approval, Place, SideEffect
from farhand.core.draft import Draft
from farhand.core.errors import InvalidAnswer
from farhand.core.events import Accepted, Answered, BackgroundEnded, Claimed, Remember
from farhand.core.marks import MASK
from farhand.core.messages import AssistantMessage, Text, ToolMessage, UserMessage
from farhand.core.pieces import Done, ToolArgsDelta, ToolEnd, ToolStart
from farhand.core.secrets import told_arguments, told_message, told_result
from farhand.core.updates import (
    CallApproved,
    CallEnded,
    CallExecuting,
    CallReady,
    CallReported,
    CallStreamed,
    CallWaiting,
    current,
)
from tests.core.story import Story, make_tool

SECRET = {"type": "string", "secret": True}
LOGIN = {"type": "object", "properties": {"user": {"type": "string"}, "key": SECRET}, "required": ["user"]}
ARGUMENTS = {"user": "ann", "key": "hunter2"}
SHOWN = f'{{"user":"ann","key":"{MASK}"}}'


def login(**settings: Any) -> Any:
    return make_tool("login", schema=LOGIN, **settings)


def told(story: Story) -> str:
    """Everything that anybody who watches was told, and is told who comes later."""
    shown = [told_message(message) for message in story.run.messages]
    return json.encode([story.told, current(story.run, 0), shown]).decode()


def test_a_tool_without_secrets_has_no_previews() -> None:
    story = Story(make_tool())
    [call_id] = story.reply(("t", {"key": "open"}))
    story.answer(call_id, "open")
    assert story.call(call_id).preview == story.call(call_id).result_preview == ""
    assert [told_message(message) for message in story.run.messages] == list(story.run.messages)
    assert told_result(story.call(call_id)) == Raw(b'"open"')


def test_watchers_of_a_server_tool_never_see_its_secrets() -> None:
    story = Story(login(approval=Approval.ALWAYS))
    [call_id] = story.reply(("login", ARGUMENTS))
    story.approve(call_id)
    story.answer(call_id)
    updates = {type(update): update for update in story.told}
    for kind in (CallReady, CallWaiting, CallApproved, CallExecuting):
        assert updates[kind].arguments == SHOWN
    assert "hunter2" not in told(story)


def test_the_tool_and_the_model_get_the_real_value() -> None:
    story = Story(login())
    [call_id] = story.reply(("login", ARGUMENTS))
    assert json.decode(story.call(call_id).arguments) == ARGUMENTS
    [assistant] = [message for message in story.run.messages if isinstance(message, AssistantMessage)]
    assert json.decode(assistant.calls[0].arguments) == ARGUMENTS
    assert story.replayed() == story.run


def test_a_client_that_has_to_run_a_call_is_sent_what_it_needs() -> None:
    story = Story(login(place=Place.CLIENT, approval=Approval.ALWAYS))
    [call_id] = story.reply(("login", ARGUMENTS))
    assert "hunter2" not in told(story)
    story.approve(call_id)
    [executing] = [update for update in story.told if isinstance(update, CallExecuting)]
    [again] = [update for update in current(story.run, 0) if isinstance(update, CallExecuting)]
    assert json.decode(executing.arguments) == json.decode(again.arguments) == ARGUMENTS
    assert [update.arguments for update in story.told if isinstance(update, CallApproved)] == [SHOWN]
    assert json.decode(told_arguments(story.call(call_id))) == ARGUMENTS
    story.answer(call_id)
    assert told_arguments(story.call(call_id)) == SHOWN


def test_arguments_that_do_not_fit_are_hidden_whole_and_their_faults_name_no_value() -> None:
    story = Story(login())
    calls = story.reply(
        ("login", {"pasword": "hunter2"}), ("login", '{"key": "hunter2'), ("login", {"user": 1, "key": "hunter2"})
    )
    for call_id in calls:
        assert story.call(call_id).outcome is Outcome.INVALID
        assert json.decode(story.call(call_id).preview) == MASK
    assert "hunter2" not in told(story)


def test_a_fault_of_a_secret_number_does_not_repeat_it() -> None:
    number = {"type": "object", "properties": {"pin": {"type": "integer", "secret": True}}}
    either = {
        "type": "object",
        "properties": {"pin": {"anyOf": [{"type": "integer"}, {"type": "integer"}]}, "k": SECRET},
    }
    for schema in (number, either):
        story = Story(make_tool(schema=schema))
        [call_id] = story.reply(("t", {"pin": 31.4159}))
        failure = story.call(call_id).failure
        assert failure is not None
        assert failure.path == "/pin"
        assert "31" not in failure.message


def test_empty_arguments_and_tools_that_are_not_there_are_shown_as_ever() -> None:
    story = Story(make_tool("t", schema={"type": "object", "properties": {"key": SECRET}}))
    empty, unknown = story.reply(("t", ""), ("other", {"key": "open"}))
    assert story.call(empty).preview == "{}"
    assert story.call(unknown).preview == ""


# A person edits what he sees


def test_a_person_who_edits_leaves_the_secrets_that_he_cannot_see() -> None:
    story = Story(login(approval=Approval.ALWAYS))
    [call_id] = story.reply(("login", ARGUMENTS))
    edited = SHOWN.replace("ann", "bob")
    event = answers.approve(story.run, "ann", call_id, at=2000, arguments=edited)
    assert event is not None
    story.take(event)
    assert json.decode(story.call(call_id).arguments) == {"user": "bob", "key": "hunter2"}
    assert answers.approve(story.run, "ann", call_id, at=2000, arguments=edited) is None
    story.answer(call_id)
    [message] = story.tool_messages
    assert "hunter2" in message.note
    assert "bob" in told(story)
    assert "hunter2" not in told(story)


def test_a_person_may_put_another_secret_in_its_place() -> None:
    story = Story(login(approval=Approval.ALWAYS))
    [call_id] = story.reply(("login", ARGUMENTS))
    event = answers.approve(story.run, "ann", call_id, at=2000, arguments='{"user":"ann","key":"mine"}')
    assert event is not None
    story.take(event)
    assert json.decode(story.call(call_id).arguments)["key"] == "mine"
    assert '"mine"' not in told(story)


def test_a_mask_with_nothing_behind_it_is_refused() -> None:
    story = Story(login(approval=Approval.ALWAYS))
    [call_id] = story.reply(("login", {"user": "ann"}))
    with pytest.raises(InvalidAnswer, match="/key") as caught:
        answers.approve(story.run, "ann", call_id, at=2000, arguments=SHOWN)
    assert [problem.path for problem in caught.value.problems] == ["/key"]


def test_an_edit_that_is_no_json_is_refused_as_ever() -> None:
    story = Story(login(approval=Approval.ALWAYS))
    [call_id] = story.reply(("login", ARGUMENTS))
    with pytest.raises(InvalidAnswer, match="JSON"):
        answers.approve(story.run, "ann", call_id, at=2000, arguments="{")


def test_a_decision_for_good_is_about_the_real_arguments() -> None:
    story = Story(login(approval=Approval.ALWAYS))
    first, second = story.reply(("login", ARGUMENTS), ("login", {**ARGUMENTS, "key": "other"}))
    story.approve(first, remember=Remember.ARGUMENTS)
    assert story.call(second).approval is not None
    assert story.call(second).undecided


# Results


TOKEN = {"type": "object", "properties": {"token": SECRET, "for": {"type": "string"}}}
RESULT = {"token": "t0ken", "for": "ann"}


def test_secret_results_are_masked_for_all_but_the_model() -> None:
    story = Story(make_tool(output=TOKEN))
    [call_id] = story.reply(("t", {}))
    story.answer(call_id, RESULT)
    [ended] = [update for update in story.told if isinstance(update, CallEnded)]
    assert ended.value == {"token": MASK, "for": "ann"}
    assert json.decode(told_result(story.call(call_id))) == ended.value
    [message] = story.tool_messages
    assert "t0ken" in message.text
    assert "t0ken" not in told(story)


def test_one_of_several_secret_parts_is_hidden_whole() -> None:
    story = Story(make_tool(output={"type": "string", "secret": True}))
    [call_id] = story.reply(("t", {}))
    parts = Raw(json.encode([{"type": "text", "text": "t0ken"}]))
    story.take(Answered(story.at, call_id, 1, parts, multipart=True))
    [message] = story.tool_messages
    shown = told_message(message)
    assert isinstance(shown, ToolMessage)
    assert shown.parts == (Text(MASK),)
    assert "t0ken" in message.text
    assert "t0ken" not in told(story)


def test_secret_results_of_work_in_the_background_are_masked_too() -> None:
    story = Story(make_tool(place=Place.CLIENT, output=TOKEN))
    [call_id] = story.reply(("t", {}))
    story.take(Claimed(story.at, call_id, 1, "tab"))
    story.take(Accepted(story.at, call_id, 1))
    story.take(BackgroundEnded(story.at, call_id, Outcome.OK, Raw(json.encode(RESULT))))
    [reported] = [update for update in story.told if isinstance(update, CallReported)]
    assert json.decode(reported.result) == {"token": MASK, "for": "ann"}
    news = news_of(story.call(call_id))
    assert "t0ken" in news.text
    shown = told_message(news)
    assert isinstance(shown, UserMessage)
    assert "t0ken" not in json.encode(shown).decode()
    assert shown.text.endswith(f'{{"token":"{MASK}","for":"ann"}}')
    story.reply(text="done")
    assert "t0ken" not in told(story)


def test_background_work_that_failed_has_its_reason() -> None:
    story = Story(make_tool(place=Place.CLIENT, output=TOKEN, effect=SideEffect.PURE))
    [call_id] = story.reply(("t", {}))
    story.take(Accepted(story.at, call_id, 1))
    event = answers.report(story.run, "ann", call_id, at=story.at, outcome=Outcome.FAILED, message="away")
    assert event is not None
    story.take(event)
    assert told_message(news_of(story.call(call_id))).text.endswith("away")


# While a reply arrives


def test_nobody_sees_the_arguments_of_a_tool_with_secrets_arrive() -> None:
    draft = Draft(1, 0, tools={"login": login(), "other": make_tool("other")})
    pieces = [
        ToolStart(0, "login"),
        ToolArgsDelta(0, '{"key":"hun'),
        ToolStart(1, "other"),
        ToolArgsDelta(1, '{"a":'),
        ToolArgsDelta(0, 'ter2"}'),
        ToolEnd(0, '{"key":"hunter2"}'),
        ToolEnd(1, '{"a":1}'),
        ToolStart(2, "login"),
        ToolEnd(2, '{"key":"hunter2"}'),
        Done(),
    ]
    fed = [draft.feed(piece, 0, f"c{at}") for at, piece in enumerate(pieces)]
    assert [update.text for update in fed if isinstance(update, CallStreamed)] == ['{"a":']
    assert [call.arguments for call in draft.reply(0).calls] == ['{"key":"hunter2"}', '{"a":1}', '{"key":"hunter2"}']


@given(st.recursive(st.text() | st.integers() | st.none(), lambda below: st.dictionaries(st.text(), below)))
def test_no_part_of_a_secret_is_in_what_is_told(secret: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"secret": True}}}
    story = Story(make_tool(schema=schema, approval=Approval.ALWAYS, output={"secret": True}))
    [call_id] = story.reply(("t", {"a": secret}))
    story.approve(call_id)
    story.answer(call_id, {"b": secret})
    plain = Story(make_tool(schema=schema, approval=Approval.ALWAYS, output={"secret": True}))
    [other] = plain.reply(("t", {"a": "x"}))
    plain.approve(other)
    plain.answer(other, {"b": "x"})
    waiting = [update for update in story.told if isinstance(update, CallWaiting)]
    assert told(story).replace(waiting[0].arguments_hash, "") == told(plain).replace(
        next(update.arguments_hash for update in plain.told if isinstance(update, CallWaiting)), ""
    )
