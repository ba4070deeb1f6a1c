"""What a server talks to: start runs, answer their calls, watch their threads, on any replica, after any crash."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from hashlib import sha256
from typing import Any, Literal, Self, Unpack

from msgspec import Struct, json, structs

from farhand.agent import Agent, ClientTools, Input
from farhand.calls import Call
from farhand.core.background import news_of
from farhand.core.call import Call as Record
from farhand.core.definition import Approval
from farhand.core.errors import DuplicateToolName, StartConflict, ThreadBusy, UnknownCall, UsageError
from farhand.core.events import Event, Memory, Noted, Started
from farhand.core.messages import Message
from farhand.core.opening import NOTHING, Bring, ClientState, client_state, lasting
from farhand.core.run import Run
from farhand.core.scene import Scene
from farhand.core.updates import Update
from farhand.durable.attachment import Attachment
from farhand.durable.handle import StoredRun
from farhand.durable.held import Moved
from farhand.durable.names import LOCAL, thread_key
from farhand.durable.position import Position
from farhand.durable.provider import admitted, offered, with_provided
from farhand.durable.record import Revived, read_messages, read_updates
from farhand.durable.replica import Replica
from farhand.durable.standing import Standing
from farhand.durable.timing import Timing
from farhand.durable.verbs import Verbs
from farhand.groups import Scenery, bring
from farhand.runner.clock import Clock
from farhand.runner.observer import Observer
from farhand.runner.view import RunView
from farhand.stores import open_store
from farhand.stores.base import RunRow, Store, ThreadRow
from farhand.tool import Tool

NEW_INPUT = "user provided new input"


class Thread(Struct, frozen=True):
    """A conversation as it stands."""

    id: str
    messages: tuple[Message, ...]
    seq: int
    """Number of its last update, to watch on from."""
    run: str
    """The run that is open, or empty."""
    pending: tuple[Call[Any, Any], ...]
    """Calls that wait for a client or a person."""
    latest: str = ""
    """The open run, or else the one that has ended last."""
    scene: Scene | None = None
    """What it has of its client, with what is open; None: nothing."""


class Runner(Verbs):
    """Runs agents whose runs are kept. Several runners on one store share the work; any of them takes any answer."""

    def __init__(
        self,
        *agents: Agent[Any],
        store: Store | str = "sqlite:farhand.db",
        timing: Timing = Timing(),
        clock: Clock | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        named = {agent.name: agent for agent in agents}
        if len(named) < len(agents) or not agents:
            raise UsageError("a runner needs agents, each with a name of its own: Agent(…, name=…)")
        self.store: Store = open_store(store) if isinstance(store, str) else store
        self._default = agents[0].name
        self._replica = Replica(named, self.store, timing, clock)
        self.observe(*observers)

    def observe(self, *observers: Observer) -> None:
        """Have somebody look on while runs are worked on: counts, traces, logs. To be said before it is opened."""
        self._replica.observe(*observers)

    async def open(self) -> None:
        """Open the store, and take up what was left in it."""
        await self._replica.open()

    async def close(self) -> None:
        """Let runs come to rest, give the others to whoever else is there, and close the store."""
        await self._replica.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def agents(self) -> Mapping[str, Agent[Any]]:
        """By name, the default one first."""
        return self._replica.agents

    def now(self) -> int:
        """The time that its runs go by."""
        return self._replica.clock.now()

    @property
    def busy(self) -> int:
        """How many runs this process works on."""
        return self._replica.busy

    @property
    def worker(self) -> str:
        """Under which name it holds runs; empty while it is taken for dead."""
        return self._replica.worker

    def new_id(self) -> str:
        """An id that nobody can guess."""
        return self._replica.clock.new_id()

    # Runs

    async def start(
        self,
        message: Input,
        *,
        thread: str | None = None,
        principal: str = LOCAL,
        agent: str | None = None,
        tools: ClientTools = (),
        key: str = "",
        busy: Literal["replace", "refuse"] = "replace",
        clashes: Literal["warn", "refuse"] = "warn",
        attended: bool = False,
        target: str = "",
        **scenery: Unpack[Scenery],
    ) -> StoredRun[Any]:
        """Begin a run; it is stored when this returns, and works on by itself.

        The thread's own history goes before the message. With a `key`, starting again gives the same run. A client's
        tool that has the name of one of the agent's is left out, or with `clashes="refuse"` the start is refused.
        `attended`: clients are expected to be attached, and one that is not there is missed. `target`: the one client
        that may take its calls up. `scenery` is what the client brings beside the message; what of it lasts stays with
        the thread until a start with `reset_client_state`.
        """
        name = agent or self._default
        clock = self._replica.clock
        tools = tools if isinstance(tools, bytes | str) else tuple(tools)  # it may be tried several times
        given = self._bring(name, scenery) if scenery else NOTHING
        request = _request(name, thread or "", message, tools, given) if key else ""
        thread = thread or clock.new_id()
        while True:
            if key and (row := await self.store.run_under(principal, key)) is not None:
                return await self._same(row, request)
            known = await self._free(thread, principal, busy, key)
            if known is None:
                continue
            history, client = await self._past(known, forget=given.reset)
            agreed = self._agreed(
                name,
                message,
                tools,
                principal=principal,
                thread=thread,
                history=history,
                client=client,
                given=given,
            )
            started = await self._with_memory(agreed)
            if started.refused and clashes == "refuse":
                raise DuplicateToolName("; ".join(started.refused))
            providers = await self._replica.presence.providers(principal)
            started = with_provided(started, providers, self._replica.agent(name).admission)
            started = structs.replace(started, attended=attended, target=target, trace=self._replica.sight.trace())
            row = RunRow(
                id=started.run_id,
                thread=known.id,
                agent=name,
                principal=principal,
                key=key,
                request=request,
                state="running",
                version=0,
                holder=self._replica.worker,
                seq=known.seq,
                said=known.said,
                created=started.at,
                updated=started.at,
            )
            try:
                await self._replica.begin(row, structs.replace(known, run=row.id, updated=started.at), started)
            except Moved:
                continue
            return self._handle(row, thread)

    async def run(self, message: Input, **settings: Any) -> RunView[Any]:
        """`start` with the same settings, and wait until the run has ended or waits for somebody."""
        run = await self.start(message, **settings)
        return await run.wait()

    async def find(self, run: str, *, principal: str = LOCAL) -> StoredRun[Any]:
        """A run by its id."""
        stored = await self.store.load(run)
        if stored is None or stored.run.principal != principal:
            raise UnknownCall("there is no such run")
        return self._handle(stored.run, stored.thread.name)

    async def thread(self, thread: str, *, principal: str = LOCAL) -> Thread:
        """A conversation: what was said, what waits, and from which number to watch on."""
        key = thread_key(principal, thread)
        row = await self.store.thread(key)
        if row is None:
            raise UnknownCall("there is no such thread")
        revived = await self._replica.read(row.run) if row.run else None
        if revived is None:
            last = await self.store.log(key, row.seq - 1, 1)  # whoever told the last update
            latest = last[0].run if last else ""
            messages, client = await self._past(row)
            scene = None if client is None else lasting(client.scene, client.scene.showing)
            return Thread(thread, messages, row.seq, "", (), latest, scene)
        view: RunView[Any] = RunView(revived.run, self._replica.means(revived.row.agent))
        return Thread(thread, revived.run.messages, revived.row.seq, row.run, view.pending, row.run, revived.run.scene)

    def watch_many(
        self, thread: str, after: Position | int = 0, *, principal: str = LOCAL
    ) -> AsyncGenerator[list[Update], None]:
        """`watch` in lists of what is ready together. `Position.of` says where whoever has seen an update is."""
        place = Position(after) if isinstance(after, int) else after
        return self._replica.watch(thread_key(principal, thread), place)

    async def watch(
        self, thread: str, *, principal: str = LOCAL, after: Position | int = 0
    ) -> AsyncGenerator[Update, None]:
        """Every update of a thread after a number: what was missed, then what happens, without gap, repeat or end."""
        async with aclosing(self.watch_many(thread, after, principal=principal)) as batches:
            async for batch in batches:
                for update in batch:
                    yield update

    async def updates(
        self, thread: str, after: int = 0, *, principal: str = LOCAL, limit: int = 100
    ) -> tuple[list[Update], bool]:
        """Stored updates of a thread after a number, of so many commits; and whether there are more."""
        rows = await self.store.log(thread_key(principal, thread), after, limit)
        told = [update for row in rows for update in read_updates(row) if update.seq > after]
        return told, len(rows) == limit

    async def pending(self, *, principal: str = LOCAL, thread: str = "", limit: int = 1000) -> list[Call[Any, Any]]:
        """Calls of a principal that wait for a client or a person, oldest first."""
        key = thread_key(principal, thread) if thread else ""
        rows = await self.store.waiting(principal, key, limit)
        return [Call(json.decode(row.record, type=Record), None) for row in rows]

    async def waiting(self, *, principal: str = LOCAL, thread: str = "", limit: int = 1000) -> list[Standing]:
        """The same calls, each with the run and the thread it belongs to."""
        key = thread_key(principal, thread) if thread else ""
        rows = await self.store.waiting(principal, key, limit)
        names = await self._names_of([row.thread for row in rows])
        return [Standing(json.decode(row.record, type=Record), row.run, names[row.thread]) for row in rows]

    async def call(self, call_id: str, *, principal: str = LOCAL) -> Standing:
        """A call as it stands, also one that has ended."""
        revived = await self._read(call_id, principal)
        return Standing(revived.run.calls[call_id], revived.row.id, revived.thread.name)

    async def runs(self, *, principal: str = LOCAL, state: str = "", limit: int = 100) -> list[tuple[RunRow, str]]:
        """Runs of a principal, newest first, each with the name of its thread; an empty state is any."""
        rows = await self.store.runs(principal, state, limit)
        names = await self._names_of([row.thread for row in rows])
        return [(row, names[row.thread]) for row in rows]

    # Who is there

    async def attach(
        self,
        client: str,
        offers: Iterable[str] = (),
        *,
        principal: str = LOCAL,
        thread: str | None = None,
        tools: object = (),
    ) -> Attachment:
        """A client is connected from now on, and runs the tools that it `offers`; `*` is all.

        It is there for one thread, or as a provider for all of its principal's. A provider may bring definitions of its
        own: runs that begin while it is attached have them.
        """
        if thread is not None and tools not in ((), b"", ""):
            raise UsageError("a client of one thread brings its tools with its runs: start(…, tools=…)")
        own = admitted(tools, self._replica.agents)
        names = offered(client, offers, own)
        key = "" if thread is None else thread_key(principal, thread)
        return await self._replica.presence.attach(client, names, principal=principal, thread=key, tools=own)

    def retire(self) -> None:
        """This process is about to stop: who loses its connection by that is not said to be absent.

        Whoever takes over, or starts next, looks who has come back.
        """
        self._replica.presence.retire()

    # How it is done

    async def _tell_thread(self, revived: Revived, call_id: str) -> None:
        """Have the model told of what came after the end of a run. Said again, it is told once more at most."""
        row, thread = revived.row, revived.thread
        news = news_of(revived.run.calls[call_id])

        def note(run: Run, now: int) -> Sequence[Event | None]:
            if run.ending is not None:
                raise ThreadBusy("the run has ended meanwhile")
            return [None if call_id in run.noted else Noted(now, call_id, news)]

        key = f"background:{call_id}"
        while await self.store.run_under(row.principal, key) is None:
            known = await self.store.thread(row.thread)
            with suppress(ThreadBusy):
                if known is not None and known.run:
                    await self._replica.say(known.run, note)
                    return
                await self.start(
                    news,
                    thread=thread.name,
                    principal=row.principal,
                    agent=row.agent,
                    key=key,
                    busy="refuse",
                    attended=revived.run.attended,
                    target=revived.run.target,
                )

    async def _names_of(self, keys: Sequence[str]) -> Mapping[str, str]:
        """What threads are called by their owner."""
        keys = list(dict.fromkeys(keys))
        found = await asyncio.gather(*map(self._replica.names.of, keys))
        return {key: "" if name is None else name.name for key, name in zip(keys, found, strict=True)}

    async def _free(self, thread: str, principal: str, busy: str, key: str) -> ThreadRow | None:
        """The thread, without an open run; None if what is to be started has been started meanwhile."""
        name = thread_key(principal, thread)
        row = await self.store.thread(name)
        now = self._replica.clock.now()
        if row is None:
            return ThreadRow(id=name, owner=principal, name=thread, created=now, updated=now)
        if row.run:
            if key and await self.store.run_under(principal, key) is not None:
                return None  # the open run may be the very one
            if busy == "refuse":
                raise ThreadBusy(f"thread {thread!r} has an open run")
            await self.cancel(row.run, NEW_INPUT, principal=principal)
            return await self._free(thread, principal, busy, key)
        return row

    async def _past(self, thread: ThreadRow, *, forget: bool = False) -> tuple[tuple[Message, ...], ClientState | None]:
        """What was said in a thread without an open run, and what it has of its client.

        Where it has something, its last run is read, which comes with everything that was said.
        """
        if thread.scene and not forget:
            last = await self._replica.read(thread.scene)
            if last is not None:
                return last.run.messages, client_state(last.run.scene, last.run.tools)
        return read_messages(await self.store.messages(thread.id)) if thread.said else (), None

    def _bring(self, agent: str, scenery: Scenery) -> Bring:
        """What the client brings along, once and for all: a start may be tried several times."""
        given, own = bring(scenery, self._replica.agent(agent).admission)
        if any(tool.function is not None for tool in own):
            raise UsageError("a stored run takes definitions; tools with functions belong to the agent")
        return given

    def _agreed(
        self,
        name: str,
        message: Input,
        tools: ClientTools,
        *,
        principal: str,
        thread: str,
        history: tuple[Message, ...],
        client: ClientState | None,
        given: Bring,
    ) -> Started:
        """The event that begins the run."""
        agent = self._replica.agent(name)
        clock = self._replica.clock
        started, brought = agent.started(
            message,
            tools=tools,
            history=history,
            principal=principal,
            thread=thread,
            memory=(),
            run_id=clock.new_id(),
            at=clock.now(),
            client=client,
            given=given,
        )
        if any(tool.function is not None for tool in brought.values()):
            raise UsageError("a stored run takes definitions; tools with functions belong to the agent")
        return started

    async def _with_memory(self, started: Started) -> Started:
        if all(tool.policy.approval is Approval.NEVER for tool in started.tools):
            return started
        rows = await self.store.memories(started.principal)
        return structs.replace(started, memory=tuple(Memory(row.pin, row.allow, row.arguments_hash) for row in rows))

    async def _same(self, row: RunRow, request: str) -> StoredRun[Any]:
        thread = await self.store.thread(row.thread)
        if row.request != request or thread is None:
            raise StartConflict("another run was started under this key")
        return self._handle(row, thread.name)

    def _handle(self, row: RunRow, thread: str) -> StoredRun[Any]:
        return StoredRun(self._replica, row.id, thread=thread, key=row.thread, agent=row.agent, seq=row.seq)


def _request(agent: str, thread: str, message: Input, tools: ClientTools, given: Bring) -> str:
    """What a start asks for, as far as it has to be the same under the same key."""
    brought = tools if isinstance(tools, bytes | str) else [_said_of(tool) for tool in tools]
    asked: list[object] = [agent, thread, repr(message), repr(brought)]
    return sha256(json.encode(asked if given == NOTHING else [*asked, given])).hexdigest()


def _said_of(tool: Tool[Any, Any] | Mapping[str, Any]) -> object:
    return (tool.name, tool.definition.pin) if isinstance(tool, Tool) else tool
