"""One conversation with an agent at a server: begin runs in it, follow them, go on with them, look at it."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, Unpack
from uuid import uuid4

from msgspec import Raw, Struct

from farhand.agent import Input, user_message
from farhand.client.feed import Feed
from farhand.client.hands import ALL, Hands, OnApproval, OnToolCall
from farhand.client.kit import Kit
from farhand.client.result import RunResult
from farhand.client.seen import Seen
from farhand.client.stream import Followed, Stream
from farhand.client.toolbox import AnyGroup, Tools, added, picked, read_group, sent, sent_groups
from farhand.client.watch import Watch
from farhand.client.wire import checked_id
from farhand.core.errors import UnknownCall
from farhand.core.group import ToolGroup
from farhand.core.messages import Message, UserMessage
from farhand.core.scene import ContextItem
from farhand.places.values import dump
from farhand.plugins.plugin import AnyTool
from farhand.protocols.native import CancelRequest, RunHandle, RunRequest, RunView, ThreadView


class HandSettings(TypedDict, total=False):
    """What can be said of how a client works on the calls of one run."""

    run_tools: bool
    """False: run nothing and ask nobody; the calls are yours to answer, and the stream ends when the run waits."""
    max_tool_rounds: int
    """Replies of the model whose calls are run here; further calls are answered with a failure. 0 is no limit."""
    on_tool_call: OnToolCall | None
    """Is asked for each call before its function; `NotMine` leaves it to that. Then all client tools are offered."""
    on_approval: OnApproval | None
    """Decides for the person; without it the client's own `on_approval`."""
    tools: Iterable[AnyTool]
    """More tools, for this run."""
    groups: Iterable[AnyGroup]
    """More groups of tools; at the server they stay with the thread."""
    declared: Iterable[AnyGroup]
    """Groups that an augmentation may bring in by their names; their tools are run here then."""
    only: Iterable[str] | None
    """Of the tools, those of these names."""
    without: Iterable[str]
    """Of the tools, none of these names."""
    offers: Iterable[str] | None
    """Tools whose calls are taken up here, instead of those that have a function; `["*"]` is all."""
    hold: bool | None
    """True: follow the run to its end. False: until it waits for anybody else. Left out: until a person must decide."""


class RunSettings(HandSettings, total=False):
    """What can be said of one run besides what the user says."""

    agent: str
    """By name; the server's first one if it is left out."""
    target: str
    """The one client that may take up the calls of this run."""
    key: str
    """Your own name for the run: started again, it is the same run. Left out, the client makes one up."""
    busy: Literal["replace", "refuse"]
    """What becomes of a run that is open in the thread: it is called off, or this one is refused."""
    requires: tuple[str, ...]
    """Capabilities without which the server shall refuse."""
    expanded: Iterable[str]
    """Names of groups to begin with open."""
    hidden: Iterable[str]
    """The client's tools that the model is not shown."""
    context: Iterable[ContextItem | Mapping[str, Any]]
    """What the model should know of where the user is."""
    state: Any
    """Your own, kept with the thread."""
    reset_client_state: bool
    """Have the thread forget what it has of the client first."""


class _Chosen(Struct, frozen=True):
    tools: Tools
    brought: Tools
    hands: Hands
    groups: tuple[ToolGroup, ...] = ()
    declared: tuple[ToolGroup, ...] = ()


class Thread:
    """A conversation by its id. Holding it holds nothing: the server has the conversation."""

    def __init__(self, kit: Kit, thread: str) -> None:
        self._kit = kit
        self._position = ""
        """Something that is surely before whatever run begins next."""
        self.id = checked_id(thread)

    # Runs

    async def run(self, message: Input, **settings: Unpack[RunSettings]) -> RunResult:
        """Say something, and wait until the agent is done or waits for somebody who is not here."""
        return await self.stream(message, **settings)

    def stream(self, message: Input, **settings: Unpack[RunSettings]) -> Stream:
        """The same, as updates: `async for update in thread.stream("hi")`. Nothing is sent before it is read."""

        async def prepare() -> Followed:
            said = user_message(message)
            chosen = self._chosen(settings)
            request = await self._request(message, said, chosen, settings)
            feed = Feed(
                self._kit.wire,
                self._kit.events,
                self.id,
                position=self._position,
                client=self._kit.id,
                offers=chosen.hands.offers,
                start=request,
            )
            return _followed(feed, Seen((said,)), chosen.hands, settings)

        return Stream(self._kit, prepare, self._keep)

    async def start(self, message: Input, **settings: Unpack[RunSettings]) -> RunHandle:
        """Begin a run and leave it to itself: its calls wait for whoever comes, here with `resume`."""
        request = await self._request(message, user_message(message), self._chosen(settings), settings, wait="turn")
        return await self._kit.wire.ask("start-run", {"thread": self.id}, body=request)

    def resume(self, run_id: str | None = None, **settings: Unpack[HandSettings]) -> Stream:
        """Follow a run that was begun before, and work on its calls: by its id, or the latest one of the thread."""

        async def prepare() -> Followed:
            view, said = await self._found(run_id)
            ended = view.state not in _OPEN
            seen = Seen(said)
            seen.begin_at(view)
            chosen = self._chosen(settings)
            position = str(view.seq - 1 if ended else view.seq)  # its last update is told again: it ends the stream
            feed = Feed(
                self._kit.wire,
                self._kit.events,
                self.id,
                position=position,
                client=self._kit.id,
                offers=chosen.hands.offers,
            )
            return _followed(feed, seen, chosen.hands, settings)

        return Stream(self._kit, prepare, self._keep)

    async def cancel(self, reason: str = "") -> bool:
        """Call the open run off; false if there is none."""
        run_id = (await self.state()).run_id
        if not run_id:
            return False
        cancelled = await self._kit.wire.ask("cancel-run", {"run": run_id}, body=CancelRequest(reason=reason))
        return not cancelled.repeated

    # Looking

    def watch(self, after: str | int = "") -> Watch:
        """Every update after a position, or from the beginning, then whatever happens, without end."""
        return Watch(Feed(self._kit.wire, self._kit.events, self.id, position=str(after)), str(after))

    async def state(self) -> ThreadView:
        """What was said, what waits, and where to watch on."""
        return await self._kit.wire.ask("get-thread", {"thread": self.id})

    def __repr__(self) -> str:
        return f"<Thread {self.id!r}>"

    # How it is done

    def _keep(self, position: str) -> None:
        self._position = position

    def _chosen(self, settings: Mapping[str, Any]) -> _Chosen:
        """The tools of a run: which definitions are sent, and which calls are taken up."""
        kit = self._kit
        only, without = settings.get("only"), settings.get("without", ())
        groups = [read_group(group) for group in settings.get("groups", ())]
        declared = [read_group(group) for group in settings.get("declared", ())]
        more = [*settings.get("tools", ()), *(tool for _, tools in (*groups, *declared) for tool in tools)]
        brought = picked(added(kit.toolbox.brought, more), only, without)
        tools = {**picked(kit.toolbox.implemented, only, without), **brought}
        on_tool_call = settings.get("on_tool_call")
        offers = settings.get("offers")
        if offers is None:
            offers = (ALL,) if on_tool_call is not None else tools
        hands = Hands(
            tools,
            offers=tuple(offers),
            on_tool_call=on_tool_call,
            on_approval=settings.get("on_approval") or kit.on_approval,
            rounds=settings.get("max_tool_rounds", kit.max_tool_rounds),
        )
        own = (*kit.toolbox.groups, *(group for group, _ in groups))
        return _Chosen(tools, brought, hands, own, tuple([group for group, _ in declared]))

    async def _request(
        self,
        message: Input,
        said: UserMessage,
        chosen: _Chosen,
        settings: Mapping[str, Any],
        *,
        wait: Literal["held", "turn"] = "held",
    ) -> RunRequest:
        given = _told(chosen, settings)
        request = RunRequest(
            **given,
            input=message if isinstance(message, str) else said.parts,
            agent=settings.get("agent", ""),
            client=self._kit.id if wait == "held" else "",
            offers=chosen.hands.offers if wait == "held" else None,
            target=settings.get("target", ""),
            wait=wait,
            key=settings.get("key") or uuid4().hex,
            busy=settings.get("busy", "replace"),
            requires=settings.get("requires", ()),
        )
        return await self._kit.toolbox.plugins.before_request(request)

    async def _found(self, run_id: str | None) -> tuple[RunView, tuple[Message, ...]]:
        """A run, and what was said in it so far."""
        run_id = await self._latest() if run_id is None else run_id
        view, state = await self._look(run_id)
        for _ in range(_LOOKS):
            if state.seq == view.seq:
                break
            view, state = await self._look(run_id)  # something has happened between the two
        if state.seq != view.seq and view.state not in _OPEN:
            return view, ()  # there are later runs in the thread
        at = max((at for at, message in enumerate(state.messages) if isinstance(message, UserMessage)), default=0)
        return view, state.messages[at:]

    async def _look(self, run_id: str) -> tuple[RunView, ThreadView]:
        view: RunView = await self._kit.wire.ask("get-run", {"run": run_id})
        if view.thread_id != self.id:
            raise UnknownCall(f"run {run_id!r} is of another thread")
        return view, await self.state()

    async def _latest(self) -> str:
        try:
            latest = (await self.state()).latest_run_id
        except UnknownCall:
            latest = ""
        if not latest:
            raise UnknownCall(f"thread {self.id!r} has no run")
        return latest


def _told(chosen: _Chosen, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a client brings along, as it is sent. The groups it has take the places of those it has sent before."""
    grouped = {tool.name for group in (*chosen.groups, *chosen.declared) for tool in group.tools}
    alone = {name: tool for name, tool in chosen.brought.items() if name not in grouped}
    told: dict[str, Any] = {"tools": sent(alone)} if alone else {}
    if chosen.groups:
        told |= {"groups": sent_groups(chosen.groups, chosen.brought), "replace": True}
    if chosen.declared:
        told["declared"] = sent_groups(chosen.declared, chosen.brought)
    for name in ("expanded", "hidden"):
        if name in settings:
            told[name] = tuple(settings[name])
    if "context" in settings:
        told["context"] = Raw(dump(list(settings["context"])))
    if "state" in settings:
        told["state"] = Raw(dump(settings["state"]))
    if settings.get("reset_client_state"):
        told["reset_client_state"] = True
    return told


_LOOKS = 3
_OPEN = ("running", "ready", "waiting")


def _followed(feed: Feed, seen: Seen, hands: Hands, settings: Mapping[str, Any]) -> Followed:
    run_tools = settings.get("run_tools", True)
    hold = settings.get("hold")
    return Followed(feed, seen, hands, hold if hold is not None or run_tools else False, run_tools)
