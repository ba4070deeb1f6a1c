"""An agent: what a user writes down once (model, instructions, tools, limits), and how to run it in this process."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, Generic, Protocol, TypeAlias, TypedDict, Unpack, cast, overload

from msgspec import Raw, Struct

from farhand.calls import Call
from farhand.core.admission import OUTSIDE, OWNER, AdmissionLimits
from farhand.core.definition import Definition, skeleton, validate_tool_definitions
from farhand.core.errors import DuplicateToolName, InvalidInput, UsageError
from farhand.core.events import Memory, Recovered, Started
from farhand.core.limits import Limits
from farhand.core.messages import Binary, Json, Message, Part, Text, UserMessage
from farhand.core.opening import NOTHING, Bring, ClientState, opening, owners_scene
from farhand.core.scene import Showing
from farhand.core.schema import compile_schema
from farhand.core.skill import Skill
from farhand.core.updates import Update
from farhand.groups import Group, Scenery, bring
from farhand.models.base import Model, resolve
from farhand.places.values import Codec, codec
from farhand.runner.clock import Clock, SystemClock
from farhand.runner.decision import Approve, Decisions, Deny
from farhand.runner.driver import Driver, Means, OnCall
from farhand.runner.live import LiveRun
from farhand.runner.perform import perform
from farhand.runner.recent import RecentRuns
from farhand.runner.snapshot import Snapshot, read_snapshot
from farhand.runner.view import Output
from farhand.stopping import StopWhen
from farhand.tool import Tool

Input: TypeAlias = str | Part | Sequence[str | Part] | UserMessage
ClientTools: TypeAlias = Iterable["Tool[Any, Any] | Mapping[str, Any]"] | bytes | str

_RECENT = RecentRuns()
_OWNER = "local"


class Mountable(Protocol):
    """An ASGI application; whoever mounts it in another one enters its lifespan in that one's own."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One connection."""
        ...

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Agents run as long as this is entered."""
        ...

    async def drain(self) -> None:
        """Take no more work and end all streams: the server is about to stop."""
        ...


class Callbacks(Struct, frozen=True, kw_only=True):
    """Who answers in this process, so that a run does not have to wait."""

    on_call: OnCall | None = None
    """Runs client tools that have no function here; returns the result or raises. It may take a `CallContext` too."""
    on_approval: Callable[[Call[Any, Any]], Any] | None = None
    """Decides for the person: True, False, `Approve(…)` or `Deny(…)`."""
    on_update: Callable[[Update], None] | None = None
    """Is told everything, as it happens."""


class Shelves(TypedDict, total=False):
    """How an agent's tools are put in order."""

    groups: Iterable[Group]
    skills: Iterable[Skill]
    showing: Showing


class AgentSettings(Shelves, total=False):
    """What can be said of an agent besides its model and its output type."""

    instructions: str
    tools: Iterable[Tool[Any, Any]]
    limits: Limits
    stop_when: StopWhen | None
    show_errors: bool
    name: str
    clock: Clock | None
    decisions: Decisions | None
    recent: RecentRuns | None
    admission: AdmissionLimits


class Agent(Generic[Output]):
    """Model, instructions, tools and limits. It holds no conversation: every run brings its own."""

    @overload
    def __init__(
        self: "Agent[str]", model: Model | str, *, output: None = None, **settings: Unpack[AgentSettings]
    ) -> None: ...

    @overload
    def __init__(self, model: Model | str, *, output: type[Output], **settings: Unpack[AgentSettings]) -> None: ...

    @overload
    def __init__(
        self: "Agent[Any]", model: Model | str, *, output: Mapping[str, Any], **settings: Unpack[AgentSettings]
    ) -> None: ...

    def __init__(
        self,
        model: Model | str,
        *,
        instructions: str = "",
        tools: Iterable[Tool[Any, Any]] = (),
        limits: Limits = Limits(),
        output: Any = None,
        stop_when: StopWhen | None = None,
        show_errors: bool = False,
        name: str = "agent",
        clock: Clock | None = None,
        decisions: Decisions | None = None,
        recent: RecentRuns | None = None,
        admission: AdmissionLimits = OUTSIDE,
        **shelves: Unpack[Shelves],
    ) -> None:
        self.model = resolve(model)
        self.name = name
        self.instructions = instructions
        self.limits = limits
        groups = tuple(shelves.get("groups", ()))
        self.tools = _by_name([*tools, *(tool for group in groups for tool in group.tools)])
        self.decisions = Decisions() if decisions is None else decisions
        self._definitions = tuple(tool.definition for tool in self.tools.values())
        self._scene = owners_scene(
            [group.definition for group in groups],
            shelves.get("skills", ()),
            self._definitions,
            shelves.get("showing", Showing()),
        )
        self._stop_when = stop_when
        self._show_errors = show_errors
        self._clock: Clock = SystemClock() if clock is None else clock
        self._admission = _within_owner(admission)
        self._recent = _RECENT if recent is None else recent
        self._output: Codec | None = None if output is None else codec(output)
        self._schema = Raw(b"null") if self._output is None else self._output.schema
        if self._output is not None and compile_schema(bytes(self._schema), OWNER).marks is not None:
            raise UsageError("the output of an agent is shown to whoever watches: it has no secret fields")

    async def run(
        self,
        message: Input,
        *,
        tools: ClientTools = (),
        history: Sequence[Message] = (),
        principal: str = _OWNER,
        thread: str | None = None,
        on_call: OnCall | None = None,
        on_approval: Callable[[Call[Any, Any]], Any] | None = None,
        on_update: Callable[[Update], None] | None = None,
        client: ClientState | None = None,
        **scenery: Unpack[Scenery],
    ) -> LiveRun[Output]:
        """Run until the agent is done or waits for a client or a person.

        `client` is what an earlier run has left of the client, its `client_state`; `scenery` what it brings now.
        """
        callbacks = Callbacks(on_call=on_call, on_approval=on_approval, on_update=on_update)
        live = self.start(
            message,
            tools=tools,
            history=history,
            principal=principal,
            thread=thread,
            callbacks=callbacks,
            client=client,
            **scenery,
        )
        return await live.wait()

    def stream(
        self,
        message: Input,
        *,
        tools: ClientTools = (),
        history: Sequence[Message] = (),
        principal: str = _OWNER,
        thread: str | None = None,
        on_call: OnCall | None = None,
        on_approval: Callable[[Call[Any, Any]], Any] | None = None,
        hold: bool = False,
        client: ClientState | None = None,
        **scenery: Unpack[Scenery],
    ) -> "Stream[Output]":
        """The same, as updates: `async for update in agent.stream("hi")`. `.run` is the run."""
        callbacks = Callbacks(on_call=on_call, on_approval=on_approval)
        live = self.start(
            message,
            tools=tools,
            history=history,
            principal=principal,
            thread=thread,
            callbacks=callbacks,
            client=client,
            **scenery,
        )
        return Stream(live, hold=hold)

    def start(
        self,
        message: Input,
        *,
        tools: ClientTools = (),
        history: Sequence[Message] = (),
        principal: str = _OWNER,
        thread: str | None = None,
        callbacks: Callbacks = Callbacks(),
        client: ClientState | None = None,
        **scenery: Unpack[Scenery],
    ) -> LiveRun[Output]:
        """A run that has not begun to work: watch it, then `await run.wait()` or `async for … in run.updates()`."""
        clock = self._clock
        given, in_groups = bring(scenery, self._admission) if scenery else (NOTHING, ())
        started, brought = self.started(
            message,
            tools=tools,
            history=history,
            principal=principal,
            thread=thread or clock.new_id(),
            memory=self.decisions.of(principal),
            run_id=clock.new_id(),
            at=clock.now(),
            client=client,
            given=given,
            in_groups=in_groups,
        )
        driver = Driver(self.means(brought, callbacks), perform)
        if callbacks.on_update is not None:
            driver.watchers.add(callbacks.on_update)
        driver.commit(started)
        return LiveRun(driver, self._recent.note)

    def started(
        self,
        message: Input,
        *,
        tools: ClientTools,
        history: Sequence[Message],
        principal: str,
        thread: str,
        memory: tuple[Memory, ...],
        run_id: str,
        at: int,
        client: ClientState | None = None,
        given: Bring = NOTHING,
        in_groups: Sequence[Tool[Any, Any]] = (),
    ) -> tuple[Started, Mapping[str, Tool[Any, Any]]]:
        """The event that begins a run, and the program's own tools that it brings along, those `in_groups` too."""
        brought, definitions, refused = self._brought(tools)
        offered = (*self._definitions, *definitions) if definitions else self._definitions
        scene = None
        if definitions or given is not NOTHING or client is not None or self._scene is not None:
            scene, offered = opening(self._scene, offered, client, given, self._admission)
            brought = _by_name([*brought.values(), *in_groups])
        started = Started(
            at=at,
            run_id=run_id,
            thread_id=thread,
            principal=principal,
            messages=(*history, user_message(message)),
            tools=offered,
            instructions=self.instructions,
            limits=self.limits,
            output_schema=self._schema,
            judged_stop=self._stop_when is not None,
            memory=memory,
            refused=refused,
            scene=scene,
        )
        return started, brought

    async def resume(
        self,
        data: bytes | str,
        answers: Mapping[str, Any] | None = None,
        *,
        decisions: "Mapping[str, bool | Approve | Deny] | None" = None,
        tools: Iterable[Tool[Any, Any]] = (),
        on_call: OnCall | None = None,
        on_approval: Callable[[Call[Any, Any]], Any] | None = None,
        on_update: Callable[[Update], None] | None = None,
    ) -> LiveRun[Output]:
        """Go on with a run that `to_json` wrote, with results by call id and decisions about approvals.

        The same stored run resumed twice in one process goes on once: the second caller gets the run that is under way,
        or waits for it if it is under way in another thread.
        """
        callbacks = Callbacks(on_call=on_call, on_approval=on_approval, on_update=on_update)
        live = self.load(data, tools=tools, callbacks=callbacks)
        await live.reach()
        live.settle(answers or {}, decisions or {})
        return await live.wait()

    def load(
        self, data: bytes | str, *, tools: Iterable[Tool[Any, Any]] = (), callbacks: Callbacks = Callbacks()
    ) -> LiveRun[Output]:
        """A run that `to_json` wrote, ready to be answered; it has not begun to work again."""
        snapshot = read_snapshot(data)
        with self._recent.lock:
            return self._take_up(snapshot, tools, callbacks)

    def _take_up(self, snapshot: Snapshot, tools: Iterable[Tool[Any, Any]], callbacks: Callbacks) -> LiveRun[Output]:
        """The run that this process has already, or else a new one."""
        known = self._recent.find(snapshot.run)
        if known is not None and (known.busy or known.state.events > snapshot.run.events):
            if callbacks.on_update is not None:
                known.watch(callbacks.on_update, current=True)
            self._recent.keep(known)
            return cast("LiveRun[Output]", known)
        brought = _by_name(tools)
        if brought:
            _by_name([*self.tools.values(), *brought.values()])
        driver = Driver(self.means(brought, callbacks), perform, state=snapshot.run, seq=snapshot.seq)
        own = [*self._definitions, *(tool.definition for tool in brought.values())]
        tools_now, refused = tools_of_today(own, snapshot.run.tools.values())
        if snapshot.run.ending is None:
            driver.commit(Recovered(self._clock.now(), tools_now, snapshot.unsent))
        if callbacks.on_update is not None:
            driver.join(callbacks.on_update)
        for text in refused:
            driver.warn("tool_refused", text)
        live: LiveRun[Output] = LiveRun(driver, self._recent.note)
        if known is not None:
            known.follow(live)
        self._recent.keep(live)
        return live

    def asgi(self, **settings: Any) -> "Mountable":
        """An ASGI application that serves this agent. The settings are those of `farhand.asgi.create_app`."""
        # By its name: a server is a layer further out, and the packages it needs are an extra.
        try:
            outside = import_module("farhand.asgi")
        except ModuleNotFoundError as error:
            raise UsageError(f"a server needs {error.name}: pip install 'farhand[server]'") from error
        return outside.create_app(self, **settings)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Of its own tools."""
        return self._definitions

    @property
    def admission(self) -> AdmissionLimits:
        """What definitions from outside have to keep to."""
        return self._admission

    def means(
        self, brought: Mapping[str, Tool[Any, Any]], callbacks: Callbacks, *, clock: Clock | None = None
    ) -> Means:
        """What its runs work with in this process."""
        return Means(
            self.model,
            {**self.tools, **brought} if brought else self.tools,
            clock or self._clock,
            self.decisions,
            callbacks.on_call,
            callbacks.on_approval,
            self._stop_when,
            self._output,
            self._show_errors,
        )

    def _brought(self, tools: ClientTools) -> tuple[dict[str, Tool[Any, Any]], tuple[Definition, ...], tuple[str, ...]]:
        """What this run brings along: the program's tools, definitions from outside, and which of those are refused."""
        if isinstance(tools, tuple) and not tools:
            return {}, (), ()
        own: list[Tool[Any, Any]] = []
        foreign: list[Any] | bytes | str = []
        if isinstance(tools, bytes | str):
            foreign = tools
        else:
            for entry in tools:
                own.append(entry) if isinstance(entry, Tool) else foreign.append(entry)
        brought = _by_name([*self.tools.values(), *own])
        outside = validate_tool_definitions(foreign, self._admission) if foreign != [] else ()
        kept, refused = _beside([tool.definition for tool in brought.values()], outside)
        return {tool.name: tool for tool in own}, (*(tool.definition for tool in own), *kept), refused


def tools_of_today(
    own: Sequence[Definition], stored: Iterable[Definition]
) -> tuple[tuple[Definition, ...], tuple[str, ...]]:
    """What a stored run is offered from now on: the program's tools as they are, the client's as they were.

    Also says which of the client's are refused, because the program has a tool of that name now.
    """
    kept, refused = _beside(own, [definition for definition in stored if definition.source == "client"])
    return (*own, *kept), refused


def _beside(own: Sequence[Definition], foreign: Sequence[Definition]) -> tuple[tuple[Definition, ...], tuple[str, ...]]:
    """The foreign definitions that may stand beside the server's own, and why the others may not."""
    if not foreign:
        return (), ()
    taken = {skeleton(definition.name): definition.name for definition in own}
    kept = tuple(definition for definition in foreign if skeleton(definition.name) not in taken)
    refused = tuple(
        f"client tool {definition.name!r} was refused: the server has a tool {taken[skeleton(definition.name)]!r}"
        for definition in foreign
        if skeleton(definition.name) in taken
    )
    return kept, refused


class Stream(Generic[Output]):
    """Updates of a run, from its first one on. Leaving the loop early cancels the run."""

    def __init__(self, run: LiveRun[Output], *, hold: bool) -> None:
        self.run = run
        """The run, to answer its calls or to read its result."""
        self._hold = hold

    def __aiter__(self) -> AsyncGenerator[Update, None]:
        return self.run.updates(hold=self._hold)


def user_message(message: Input) -> UserMessage:
    """What the user says, as a message."""
    if isinstance(message, str):
        said, text = UserMessage((Text(message),)), message
    else:
        said = _said(message)
        text = said.text
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput("the input of a run holds half a character") from None
    return said


def _said(message: Part | Sequence[str | Part] | UserMessage) -> UserMessage:
    if isinstance(message, UserMessage):
        return message
    parts: object = (message,) if isinstance(message, Text | Json | Binary) else message
    if isinstance(parts, list | tuple):
        several = cast("Sequence[object]", parts)
        if all(isinstance(part, str | Text | Json | Binary) for part in several):
            said = cast("Sequence[str | Part]", several)
            return UserMessage(tuple(Text(part) if isinstance(part, str) else part for part in said))
    raise InvalidInput(f"the input of a run is text, parts or a list of them, not {type(message).__name__}")


def _within_owner(admission: AdmissionLimits) -> AdmissionLimits:
    """What clients may bring cannot be more than what the owner's own tools may be."""
    for name in admission.__struct_fields__:
        mine, most = getattr(admission, name), getattr(OWNER, name)
        if type(mine) is int and type(most) is int and mine > most:
            raise InvalidInput(f"admission.{name} is {mine}; {most} is the most that a schema may have anywhere")
    return admission


def _by_name(tools: Iterable[Tool[Any, Any]]) -> dict[str, Tool[Any, Any]]:
    named: dict[str, Tool[Any, Any]] = {}
    looks: dict[str, str] = {}
    for tool in tools:
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{tool!r} is not a tool; put @tool above it or use tool.define")
        first = looks.setdefault(skeleton(tool.name), tool.name)
        if tool.name in named or first != tool.name:
            raise DuplicateToolName(f"two tools of one run are named {tool.name!r} ({first!r} came first)")
        named[tool.name] = tool
    return named
