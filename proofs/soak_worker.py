"""The processes that the soak kills: a nursery that forks workers, and what a worker does until it dies.

The nursery has everything imported, so that a worker is there some milliseconds after the one before it was killed. It
takes one JSON line an order (`fork`, `kill`, `stop`, `cont`) and answers each with one. A worker runs a `Runner` on the
store that all share, and does what JSON lines on a loopback socket ask of it.
"""

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

from farhand import Agent, Limits, tool
from farhand.agent import Input
from farhand.core.errors import RefusedAnswer, StartConflict, StoreError, ThreadBusy
from farhand.core.messages import UserMessage
from farhand.core.pieces import Piece
from farhand.durable import Runner, Timing
from farhand.models import Turn, Use
from farhand.models.base import Request
from farhand.places.running import CallContext
from proofs import soak_bugs

DIES_WITH_PARENT = 1
HURRY = 0.6
"""Seconds that the client has for a call of `hurry`."""
LEASE = 1.5
TIMING = Timing(lease=LEASE, beat=0.3, tick=0.05, check=0.2, drain=2.0)
LIMITS = Limits(max_turns=8, max_losses=1000)


class Effects:
    """What tools did to the world: a file that outlives everybody who writes to it."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, context: CallContext, phase: str) -> None:
        """One line, on the disk when this returns."""
        line = {
            "call": context.call_id,
            "attempt": context.attempt,
            "tool": context.tool,
            "phase": phase,
            "pid": os.getpid(),
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)


class Planned:
    """A model that follows the plan in the message: a list of turns, each a list of tools. It remembers nothing."""

    name = "planned"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The turn that the plan has at this point."""
        asked = [message for message in request.messages if isinstance(message, UserMessage)][-1]
        plan: list[list[str]] = json.loads(asked.text)
        if request.turn <= len(plan):
            turn = Turn("Let me see.", *(Use(name, {}) for name in plan[request.turn - 1]))
        else:
            turn = Turn(["All ", "is ", "done."])
        for piece in turn.pieces:
            await asyncio.sleep(random.uniform(0, 0.003))  # noqa: S311 - no secret
            yield piece


def make_agent(effects: Effects | None) -> Agent[str]:
    """The agent of every worker; whoever only reads its runs needs no effects."""

    async def work(context: CallContext, seconds: float = 0.0) -> str:
        assert effects is not None
        effects.note(context, "in")
        await asyncio.sleep(seconds or random.uniform(0, 0.02))  # noqa: S311 - no secret
        effects.note(context, "out")
        return context.call_id

    @tool(effect="once")
    async def charge(context: CallContext) -> str:
        """Charge somebody."""
        return await work(context)

    @tool(effect="once")
    async def linger(context: CallContext) -> str:
        """Charge somebody, slowly."""
        return await work(context, 1.0)

    @tool(effect="once", needs_approval=True)
    async def pay(context: CallContext) -> str:
        """Pay, if a person agrees."""
        return await work(context)

    @tool(effect="idempotent")
    async def keep(context: CallContext) -> str:
        """Keep something under the call's id."""
        return await work(context)

    @tool(effect="pure")
    async def weigh(context: CallContext) -> str:
        """Only look."""
        return await work(context)

    nothing = {"type": "object"}
    ask = tool.define("ask", input=nothing, description="Ask the client.", effect="pure")
    hurry = tool.define("hurry", input=nothing, description="The client has little time.", timeout=HURRY)
    sign = tool.define("sign", input=nothing, description="The client, if a person agrees.", needs_approval=True)
    return Agent(Planned(), tools=[charge, linger, pay, keep, weigh, ask, hurry, sign], limits=LIMITS, name="soak")


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Desk:
    """Does what a line asks for. What is refused is an answer too."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One request."""
        what, who = asked["do"], asked.get("principal", "ann")
        try:
            return await getattr(self, f"_{what}")(asked, who)
        except (RefusedAnswer, StartConflict, ThreadBusy) as error:
            return {"refused": type(error).__name__, "message": str(error)}
        except StoreError as error:
            return {"away": str(error)}
        except Exception as error:
            logging.getLogger("soak").exception("a request failed")
            return {"broken": repr(error)}

    async def _start(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        message: Input = json.dumps(asked["plan"])
        run = await self._runner.start(message, thread=asked["thread"], principal=who, key=asked["key"])
        return {"run": run.id}

    async def _pending(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        calls = await self._runner.pending(principal=who)
        return {"calls": [(call.id, call.tool, call.needs_approval) for call in calls]}

    async def _answer(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        receipt = await self._runner.answer(asked["call"], asked["value"], principal=who)
        return {"repeated": receipt.repeated}

    async def _approve(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        return {"repeated": (await self._runner.approve(asked["call"], principal=who)).repeated}

    async def _deny(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        return {"repeated": (await self._runner.deny(asked["call"], "no", principal=who)).repeated}

    async def _cancel_call(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        return {"repeated": (await self._runner.cancel_call(asked["call"], principal=who)).repeated}

    async def _cancel(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        run = await self._runner.store.run_of(asked["call"])
        assert run is not None
        return {"repeated": not await self._runner.cancel(run, principal=who)}

    async def _look(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        view = await (await self._runner.find(asked["run"], principal=who)).look()
        return {"status": view.status, "outcomes": [call.outcome for call in view.calls]}

    async def _stats(self, asked: dict[str, Any], who: str) -> dict[str, Any]:
        return {
            "rss": resident(),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "tasks": len(asyncio.all_tasks()),
        }


async def serve(listening: socket.socket, store: str, effects: str) -> None:
    """Work until killed."""
    runner = Runner(make_agent(Effects(effects)), store=store, timing=TIMING)
    while True:
        try:
            await runner.open()
            break
        except StoreError as error:
            logging.getLogger("soak").warning("cannot open the store yet: %s", error)
            await asyncio.sleep(0.05)
    desk = Desk(runner)

    async def reply(writer: asyncio.StreamWriter, asked: dict[str, Any]) -> None:
        answered = await desk.do(asked)
        with contextlib.suppress(OSError):
            writer.write(json.dumps(answered | {"id": asked["id"]}).encode() + b"\n")
            await writer.drain()

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            task = asyncio.create_task(reply(writer, json.loads(line)))
            replies.add(task)
            task.add_done_callback(replies.discard)
        writer.close()

    server = await asyncio.start_server(on_client, sock=listening, limit=1 << 20)
    await server.serve_forever()


def _be_worker(listening: socket.socket, settings: dict[str, str]) -> NoReturn:
    """In the child: never comes back."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        log = os.open(settings["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for own, other in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(own, other)
        random.seed(os.urandom(8))
        logging.basicConfig(level=logging.WARNING, format=f"%(asctime)s {os.getpid()} %(name)s: %(message)s")
        soak_bugs.plant(settings["bug"])
        asyncio.run(serve(listening, settings["store"], settings["effects"]))
    except BaseException:  # whatever it is, the log has to say it: nobody else hears of it
        logging.getLogger("soak").exception("the worker ended by itself")
    finally:
        os._exit(3)


class Nursery:
    """Forks, and signals only those whom it has forked and not yet buried."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._children: set[int] = set()

    def do(self, order: dict[str, Any]) -> dict[str, Any]:
        """One order."""
        if order["do"] == "fork":
            return self._fork()
        pid = order["pid"]
        if order["do"] == "kill":
            return {"status": self._kill(pid)}
        if pid in self._children:
            os.kill(pid, signal.SIGSTOP if order["do"] == "stop" else signal.SIGCONT)
        return {}

    def _fork(self) -> dict[str, Any]:
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        pid = os.fork()
        if pid == 0:
            _be_worker(listening, self._settings)
        listening.close()
        self._children.add(pid)
        return {"pid": pid, "port": port}

    def _kill(self, pid: int) -> int:
        """How it ended: minus the signal, or the number that it ended with by itself."""
        self._children.discard(pid)
        os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def end(self) -> None:
        """Leave nobody behind."""
        for pid in list(self._children):
            self._kill(pid)


def main() -> None:
    """Take orders until nobody gives any more."""
    nursery = Nursery(json.loads(sys.argv[1]))
    try:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(nursery.do(json.loads(line))) + "\n")
            sys.stdout.flush()
    finally:
        nursery.end()


if __name__ == "__main__":
    main()
