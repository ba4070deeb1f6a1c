"""The client itself: where its server is, who it is, and its plugins."""

import subprocess
import sys
from typing import Any

import pytest
from msgspec import json, structs

import farhand
from farhand import tool
from farhand.client import Client, ClientCall, NotMine, Plugin, RunResult
from farhand.core.errors import NotAuthenticated, UsageError
from farhand.core.group import ToolGroup
from farhand.models import Use
from farhand.protocols.native import RunRequest
from tests.client.story import ANN, Heard, app_of, client_of, office, served_by
from tests.client.test_pool import define, told


def test_the_client_is_at_the_root_and_loaded_only_when_it_is_asked_for() -> None:
    assert farhand.Client is Client
    assert "Client" in farhand.__all__
    assert "Client" in dir(farhand)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        farhand.Nothing  # type: ignore[attr-defined]  # noqa: B018
    program = "import farhand, sys; assert 'httpx2' not in sys.modules; farhand.Client; assert 'httpx2' in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 0


def test_without_its_extra_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['httpx2'] = None; import farhand; farhand.Client"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=30)
    assert "ImportError: farhand.Client needs httpx2: pip install 'farhand[client]'" in ran.stderr


async def test_server_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served_by(app_of()) as url:
        monkeypatch.setenv("FARHAND_URL", url)
        monkeypatch.setenv("FARHAND_TOKEN", ANN + "\n")
        async with Client() as client:
            assert (await client.server()).principal == "ann"
        async with Client(url, token="another-token-of-nobody") as client:
            with pytest.raises(NotAuthenticated):
                await client.server()


async def test_a_token_may_stand_behind_the_hash_of_the_url() -> None:
    async with served_by(app_of()) as url, Client(f"{url}/#token={ANN}") as client:
        assert (await client.server()).principal == "ann"
        assert ANN not in repr(client)
    with pytest.raises(UsageError, match="nothing but token="):
        Client("http://127.0.0.1:9/#elsewhere")


def test_without_a_server_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FARHAND_URL", raising=False)
    with pytest.raises(UsageError, match=r"Client\(url, token=…\), or set FARHAND_URL and FARHAND_TOKEN"):
        Client()


def test_a_client_has_an_id_of_its_own_or_the_one_it_is_given() -> None:
    one, two = client_of("http://127.0.0.1:9"), client_of("http://127.0.0.1:9")
    assert one.id != two.id
    assert client_of("http://127.0.0.1:9", id="editor").id == "editor"
    with pytest.raises(UsageError, match="an id has"):
        client_of("http://127.0.0.1:9", id="a\nb")


# Plugins.


def files(**more: Any) -> Plugin:
    return Plugin(
        **({"name": "files", "version": "1.0", "tools": [define("read")], "executors": {"read": read}} | more)
    )


def read(given: dict[str, Any]) -> str:
    return "contents"


async def test_tools_of_a_plugin_are_sent_and_run() -> None:
    async with office(script=[use_read(), "ok"], tools=()) as client:
        assert await client.use(files()) is client
        assert (client.has_plugin("files"), client.plugin_names) == (True, ("files",))
        assert [definition.name for definition in client.tools_offered] == ["read"]
        assert told(await client.thread().run("hi")) == ["contents"]


async def test_several_plugins_are_registered_one_after_another() -> None:
    client = client_of("http://127.0.0.1:9")
    other = files(name="other", tools=[define("write")], executors={})
    assert (await (await client.use(files())).use(other)).plugin_names == ("files", "other")
    again = client_of("http://127.0.0.1:9")
    await again.use(files(), other)
    assert again.plugin_names == ("files", "other")


async def test_a_plugin_is_removed_with_its_tools() -> None:
    client = client_of("http://127.0.0.1:9")
    await client.use(files())
    await client.unuse("files")
    assert (client.has_plugin("files"), client.plugin_names, client.tools_offered) == (False, (), ())
    with pytest.raises(UsageError, match='Plugin "files" is not registered'):
        await client.unuse("files")


async def test_a_plugin_that_is_refused_changes_nothing() -> None:
    client = client_of("http://127.0.0.1:9")
    with pytest.raises(UsageError, match="must have a version"):
        await client.use(files(version=""))
    assert client.plugin_names == ()


async def test_requests_hold_the_definitions_and_nothing_of_the_kind_without_plugins() -> None:
    requests: list[RunRequest] = []

    def look(request: RunRequest) -> None:
        requests.append(request)

    async with office(tools=()) as client:
        await client.use(Plugin("look", "1", before_request=look))
        await client.thread().run("hi")
        await client.use(files())
        await client.thread().run("hi")
    without, with_tools = (json.decode(json.encode(request)) for request in requests)
    assert "tools" not in without
    assert [each["name"] for each in with_tools["tools"]] == ["read"]


async def test_a_plugin_may_change_requests_and_results() -> None:
    def louder(request: RunRequest) -> RunRequest:
        return structs.replace(request, input=f"{request.input}!")

    async def shorter(result: RunResult) -> RunResult:
        return structs.replace(result, text=result.text[-4:])

    async with office() as client:
        await client.use(Plugin("louder", "1", before_request=louder), Plugin("short", "1", after_response=shorter))
        result = await client.thread("t").run("hey")
        assert result.output == "hey!"
        assert (await client.thread("t").state()).messages[-1].text == "you said: hey!"


async def test_a_request_that_a_plugin_refuses_is_not_made() -> None:
    def refuse(request: RunRequest) -> None:
        raise PermissionError("not at night")

    async with office() as client:
        await client.use(Plugin("gate", "1", before_request=refuse))
        with pytest.raises(PermissionError):
            await client.thread("t").run("hi")
        assert await client.runs() == ()


async def test_results_of_runs_that_wait_are_not_responses_yet() -> None:
    seen: list[str] = []

    def note(result: RunResult) -> None:
        seen.append(result.status)

    async with office() as client:
        await client.use(Plugin("note", "1", after_response=note))
        await client.thread("t").run("pick", hold=False)
        client.implement("pick", lambda given: {"x": 1})
        await client.thread("t").resume()
    assert seen == ["done"]


async def test_plugins_answer_calls_in_their_order_behind_the_callback_of_the_run() -> None:
    def cache(call: ClientCall[Any, Any]) -> Any:
        return "cached" if call.arguments.get("path") == "a" else NotMine

    async with office(script=[use_read(path="a"), use_read(path="b"), "ok"] * 2, tools=()) as client:
        await client.use(Plugin("cache", "1", on_tool_call=cache), files())
        assert told(await client.thread().run("hi")) == ["cached", "contents"]
        callback = {"b": "callback"}
        result = await client.thread().run(
            "hi", on_tool_call=lambda call: callback.get(call.arguments["path"], NotMine)
        )
        assert told(result) == ["cached", "callback"]


async def test_a_plugin_may_run_tools_that_have_no_executor() -> None:
    async with office(script=[use_read(), "ok"], tools=()) as client:
        bridge = files(executors={}, on_tool_call=lambda call: f"bridged {call.tool}")
        await client.use(bridge)
        heard = Heard(client, "missing_tool")
        assert told(await client.thread().run("hi")) == ["bridged read"]
    assert heard.events == []


async def test_a_plugin_may_change_a_result_before_it_is_sent() -> None:
    async with office(script=[use_read(), "ok"], tools=()) as client:
        await client.use(files(on_tool_result=lambda call, result: result.upper()))
        assert told(await client.thread().run("hi")) == ["CONTENTS"]


async def test_plugins_hear_of_what_functions_raise() -> None:
    seen: list[str] = []

    def fail(given: dict[str, Any]) -> None:
        raise OSError("no disk")

    async with office(script=[use_read(), "ok"], tools=()) as client:
        await client.use(
            files(executors={"read": fail}, on_error=lambda error, where: seen.append(f"{where}: {error}"))
        )
        await client.thread().run("hi")
    assert seen == ["tool 'read': no disk"]


async def test_the_functions_of_a_registered_group_run_here() -> None:
    async with office(script=[use_read(), "ok"], tools=()) as client:
        group = ToolGroup(
            name="Files", description="For files.", tools=(tool.define("read", description="r").definition,)
        )
        client.register_group(group, {"read": read})
        assert told(await client.thread().run("hi")) == ["contents"]


def use_read(**arguments: Any) -> Any:

    return Use("read", arguments)
