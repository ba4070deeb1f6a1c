"""Plugins: what is refused and in which words, what registering changes, and what hooks may do."""

import logging
from typing import Any

import pytest
from msgspec import structs

from farhand import CallContext, tool
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import UsageError
from farhand.plugins import NotMine, Plugin, PluginSet
from farhand.tool import Tool

ECHO = {
    "name": "echo",
    "description": "Say it again.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
NOW = {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}


def echo(arguments: dict[str, Any]) -> str:
    return arguments["text"]


def plugin(name: str = "files", **more: Any) -> Plugin:
    return Plugin(**{"name": name, "version": "1.0", "tools": [ECHO], "executors": {"echo": echo}, **more})


async def registered(*plugins: Plugin) -> PluginSet:
    known = PluginSet()
    for each in plugins:
        await known.register(each)
    return known


async def refusal(*plugins: Plugin) -> str:
    *before, last = plugins
    known = await registered(*before)
    names = known.names
    with pytest.raises(UsageError) as raised:
        await known.register(last)
    assert known.names == names
    return str(raised.value)


# What is refused.


async def test_a_valid_plugin_is_registered_with_its_tools() -> None:
    known = await registered(plugin())
    assert ("files" in known, known.names, [each.name for each in known.definitions]) == (True, ("files",), ["echo"])


async def test_a_plugin_must_have_a_name() -> None:
    assert await refusal(plugin(name="")) == "Plugin must have a name"


async def test_a_plugin_must_have_a_version() -> None:
    assert await refusal(plugin(version="")) == 'Plugin "files" must have a version'


async def test_a_plugin_is_registered_once() -> None:
    assert await refusal(plugin(), plugin(tools=[], executors={})) == 'Plugin "files" is already registered'


@pytest.mark.parametrize("name", ["1st", "read-file", "read file", "ä", "", "a" * 65, "echo\n", None])
async def test_a_tool_name_begins_with_a_letter_and_has_letters_digits_and_underscores(name: Any) -> None:
    assert await refusal(plugin(tools=[{**ECHO, "name": name}], executors={})) == (
        f'Plugin "files": Invalid tool name "{name}". Must start with a letter and contain only alphanumeric '
        "characters and underscores (max 64 chars)."
    )


@pytest.mark.parametrize("description", ["", " ", None])
async def test_a_tool_must_have_a_description(description: Any) -> None:
    said = await refusal(plugin(tools=[{**ECHO, "description": description}]))
    assert said == 'Plugin "files": Tool "echo" must have a description'


@pytest.mark.parametrize("parameters", [None, {}, {"type": "string"}, []])
async def test_the_parameters_of_a_tool_are_an_object_schema(parameters: Any) -> None:
    said = await refusal(plugin(tools=[{**ECHO, "parameters": parameters}]))
    assert said == 'Plugin "files": Tool "echo" parameters must be an object schema'


async def test_a_schema_that_cannot_be_compiled_is_refused_with_its_path() -> None:
    broken = {**ECHO, "parameters": {"type": "object", "properties": {"text": {"type": "text"}}}}
    with pytest.raises(InvalidToolDefinitions, match="/0/parameters/properties/text/type"):
        await registered(plugin(tools=[broken]))


async def test_an_executor_needs_a_tool_of_its_own_plugin() -> None:
    assert await refusal(plugin(executors={"echo": echo, "other": echo})) == (
        'Plugin "files": Executor "other" has no matching tool definition'
    )
    thief = plugin("thief", tools=[], executors={"echo": echo})
    assert await refusal(plugin(), thief) == 'Plugin "thief": Executor "echo" has no matching tool definition'


async def test_two_plugins_cannot_have_one_tool() -> None:
    assert await refusal(plugin("one"), plugin("two")) == (
        'Plugin "two": Tool "echo" conflicts with tool from plugin "one"'
    )
    alike = plugin("two", tools=[{**ECHO, "name": "Echo"}], executors={})
    assert await refusal(plugin("one"), alike) == 'Plugin "two": Tool "Echo" conflicts with tool from plugin "one"'


async def test_a_tool_that_somebody_else_has_is_a_conflict_too() -> None:
    known = PluginSet(lambda key: "a tool of the client" if key == "echo" else None)
    with pytest.raises(UsageError, match='Plugin "files": Tool "echo" conflicts with a tool of the client'):
        await known.register(plugin())


async def test_a_plugin_has_each_tool_once() -> None:
    assert await refusal(plugin(tools=[ECHO, ECHO])) == 'Plugin "files": Tool "echo" is defined twice'


async def test_a_tool_has_a_function_or_an_executor() -> None:
    mine = tool.define("echo", description="Say it again.").client(echo)
    assert await refusal(plugin(tools=[mine])) == 'Plugin "files": Tool "echo" has a function and an executor'
    assert await refusal(plugin(executors={"echo": 1})) == 'Plugin "files": Executor "echo" is not a function'


async def test_a_plugin_may_need_others_that_have_to_be_there() -> None:
    base = plugin("base", version="1.4.2")
    needs: dict[str, Any] = {"tools": [], "executors": {}}
    await registered(base, plugin("more", requires=["base>=1.4,<2"], **needs))
    assert await refusal(plugin("more", requires=["base>=1"], **needs)) == (
        'Plugin "more" requires plugin "base>=1", which is not registered'
    )
    assert await refusal(base, plugin("more", requires=["base>=1.5"], **needs)) == (
        'Plugin "more" requires plugin "base>=1.5"; version 1.4.2 is registered'
    )
    assert "is no requirement" in await refusal(base, plugin("more", requires=["base newer"], **needs))


# Registering and removing.


async def test_a_plugin_is_told_who_registers_it() -> None:
    told: list[object] = []
    host = object()
    await PluginSet().register(plugin(on_register=told.append), host)
    assert told == [host]


async def test_a_plugin_whose_hook_fails_is_not_registered() -> None:
    seen: list[str] = []

    async def fail(_: Any) -> None:
        raise OSError("no disk")

    known = PluginSet()
    with pytest.raises(OSError, match="no disk"):
        await known.register(plugin(on_register=fail, on_error=lambda error, where: seen.append(f"{where}: {error}")))
    assert (known.names, known.definitions, known.has_executor("echo")) == ((), (), False)
    assert seen == ["on_register of plugin 'files': no disk"]


async def test_removing_a_plugin_removes_all_it_brought() -> None:
    told: list[str] = []
    known = await registered(plugin(on_unregister=lambda: told.append("gone")))
    await known.unregister("files")
    assert (known.names, known.definitions, known.has_executor("echo"), told) == ((), (), False, ["gone"])
    await known.register(plugin("other"))


async def test_removing_an_unknown_plugin_is_an_error() -> None:
    with pytest.raises(UsageError, match='Plugin "files" is not registered'):
        await PluginSet().unregister("files")


async def test_a_plugin_goes_also_when_its_hook_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError("secret")

    seen: list[str] = []
    known = await registered(plugin(on_unregister=fail, on_error=lambda error, where: seen.append(where)))
    await known.unregister("files")
    assert (known.names, seen) == ((), ["on_unregister of plugin 'files'"])
    assert "OSError" in caplog.text
    assert "secret" not in caplog.text


async def test_a_plugin_that_another_one_needs_stays() -> None:
    known = await registered(plugin("base"), plugin("more", requires=["base"], tools=[], executors={}))
    with pytest.raises(UsageError, match='Plugin "base" is required by plugin "more"'):
        await known.unregister("base")
    assert known.names == ("base", "more")


async def test_definitions_of_all_plugins_are_listed_and_none_without_plugins() -> None:
    assert PluginSet().definitions == ()
    known = await registered(plugin("one"), plugin("two", tools=[NOW], executors={"now": lambda _: 1}))
    assert [each.name for each in known.definitions] == ["echo", "now"]
    assert known.names == ("one", "two")


async def test_tools_that_have_a_function_need_no_executor() -> None:
    @tool
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    known = await registered(plugin(tools=[double], executors={}))
    assert await known.execute({"name": "double", "arguments": {"n": 2}}) == 4
    assert isinstance(known.find("double"), Tool)


async def test_a_definition_is_as_good_as_its_json() -> None:
    definition = tool.define("now", description="The time.").definition
    known = await registered(plugin(tools=[definition], executors={"now": lambda _: 12}))
    assert await known.execute({"name": "now"}) == 12


# Running tools.


async def test_both_spellings_of_a_call_are_run() -> None:
    known = await registered(plugin())
    assert await known.execute({"toolCallId": "1", "toolName": "echo", "args": {"text": "a"}}) == "a"
    assert await known.execute({"id": "1", "name": "echo", "arguments": '{"text": "b"}'}) == "b"


async def test_an_executor_may_be_async_and_may_take_its_context() -> None:
    async def run(arguments: dict[str, Any], context: CallContext) -> str:
        return f"{arguments['text']} for {context.call_id}"

    known = await registered(plugin(executors={"echo": run}))
    context = CallContext(
        call_id="c1",
        tool="echo",
        attempt=1,
        run_id="r",
        thread_id="t",
        principal="",
        payload=None,
        on_progress=lambda name, value: None,
    )
    assert await known.execute({"name": "echo", "arguments": {"text": "a"}}, context) == "a for c1"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ({"args": {}}, "Tool call missing toolName"),
        ({"toolName": "nothing"}, "No executor found for tool: nothing"),
        ({"toolName": "now"}, "No executor found for tool: now"),
        ({"toolName": "echo"}, "arguments of tool 'echo': .*text"),
        ({"toolName": "echo", "args": "{"}, "arguments of tool 'echo' are not JSON"),
    ],
)
async def test_a_call_that_cannot_be_run_says_why(call: dict[str, Any], text: str) -> None:
    known = await registered(plugin(tools=[ECHO, NOW]))
    with pytest.raises(UsageError, match=text):
        await known.execute(call)


async def test_whether_a_tool_has_an_executor_can_be_asked() -> None:
    known = await registered(plugin(tools=[ECHO, NOW]))
    assert [known.has_executor(name) for name in ("echo", "now", "nothing")] == [True, False, False]


async def test_the_log_names_plugins_and_tools_and_never_what_they_were_given(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "farhand.plugins"):
        known = await registered(plugin())
        await known.execute({"name": "echo", "arguments": {"text": "secret"}})
        await known.unregister("files")
    assert [record.getMessage() for record in caplog.records] == [
        "registered plugin files 1.0 with tools: echo",
        "running tool echo of a plugin",
        "unregistered plugin files",
    ]


# Hooks.


def adding(name: str, mark: str) -> Plugin:
    return Plugin(name, "1", before_request=lambda said: said + mark, after_response=lambda said: said + mark)


async def test_requests_and_responses_go_through_the_plugins_in_order() -> None:
    known = await registered(adding("one", "1"), Plugin("quiet", "1"), adding("two", "2"))
    assert await known.before_request("hi ") == "hi 12"
    assert await known.after_response("ok ") == "ok 12"


async def test_a_hook_that_gives_nothing_changes_nothing() -> None:
    async def look(_: str) -> None:
        """Only looks."""

    known = await registered(Plugin("look", "1", before_request=look, after_response=look))
    assert (await known.before_request("hi"), await known.after_response("ok")) == ("hi", "ok")


async def test_a_request_that_a_plugin_refuses_is_not_made_and_a_finished_response_is_kept() -> None:
    seen: list[str] = []

    def fail(_: str) -> str:
        raise PermissionError("not now")

    known = await registered(
        Plugin("gate", "1", before_request=fail, after_response=fail),
        Plugin("watch", "1", on_error=lambda error, where: seen.append(f"{where}: {error}")),
    )
    with pytest.raises(PermissionError):
        await known.before_request("hi")
    assert await known.after_response("ok") == "ok"
    assert seen == ["before_request of plugin 'gate': not now", "after_response of plugin 'gate': not now"]


async def test_the_first_plugin_that_answers_a_call_wins_and_nothing_is_an_answer() -> None:
    known = await registered(
        Plugin("a", "1", on_tool_call=lambda call: NotMine if call == "x" else NotMine()),
        Plugin("b", "1", on_tool_call=lambda call: None if call == "x" else NotMine),
        Plugin("c", "1", on_tool_call=lambda call: "c"),
    )
    assert await known.on_tool_call("x") is None
    assert await known.on_tool_call("y") == "c"
    assert await PluginSet().on_tool_call("x") is NotMine


async def test_plugins_may_change_a_result_and_their_faults_do_not() -> None:
    known = await registered(
        Plugin("double", "1", on_tool_result=lambda call, result: result * 2),
        Plugin("broken", "1", on_tool_result=lambda call, result: 1 / 0),
        Plugin("quiet", "1", on_tool_result=lambda call, result: None),
    )
    assert await known.on_tool_result("call", 21) == 42


async def test_a_plugin_whose_on_error_fails_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def fail(error: BaseException, where: str) -> None:
        raise RuntimeError("again")

    known = await registered(
        Plugin("broken", "1", on_error=fail), Plugin("fine", "1", on_error=lambda error, where: seen.append(where))
    )
    await known.report(ValueError("x"), "tool 'echo'")
    assert seen == ["tool 'echo'"]
    assert "on_error of plugin 'broken' failed: RuntimeError" in caplog.text


async def test_a_plugin_is_a_value_that_can_be_made_from_another() -> None:
    one = plugin()
    two = structs.replace(one, name="copy", tools=[NOW], executors={"now": lambda _: 1})
    assert (await registered(one, two)).names == ("files", "copy")
    with pytest.raises(AttributeError):
        one.name = "other"  # type: ignore[misc]
