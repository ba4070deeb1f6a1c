"""DBOS: one durable workflow a run, which waits for its client in `recv`; its state in SQLite or PostgreSQL.

The workflow asks the model in a step, shows the call with `set_event` and gets the result by `send`; the client sees
the call with `get_event`. Tuned to DBOS's advantage: SQLite polls every millisecond instead of every second, and its
file is in WAL mode. On PostgreSQL it listens, as it does by default. The asynchronous interface is the faster one.
"""

import json
import sqlite3
import time
from contextlib import closing
from typing import Any

from dbos import DBOS, DBOSConfig

from bench import story
from bench.durable import trips as clock

PATIENCE = 60.0
POLL = 0.001  # the least that it takes


@DBOS.step()
async def ask_model(results: list[str]) -> Any:
    reply = story.pause(results)
    return reply if isinstance(reply, str) else {"id": reply.id, "name": reply.name, "args": reply.args}


@DBOS.workflow()
async def agent(prompt: str) -> str:
    results: list[str] = []
    while not isinstance(reply := await ask_model(results), str):
        await DBOS.set_event_async("call", reply)
        results.append(json.dumps(await DBOS.recv_async("result", PATIENCE)))
    return reply


async def trips(url: str, **how: Any) -> dict[str, Any]:
    scheme, _, path = url.partition(":")
    if scheme == "sqlite":
        with closing(sqlite3.connect(path)) as file:
            file.execute("pragma journal_mode = wal")
        url = f"sqlite:///{path}"
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "notification_listener_polling_interval_sec": POLL,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    try:
        return await clock.measure(trip, **how)
    finally:
        DBOS.destroy()


async def trip() -> int:
    run = await DBOS.start_workflow_async(agent, story.PROMPT)
    call = await DBOS.get_event_async(run.workflow_id, "call", PATIENCE)
    seen = time.perf_counter_ns()
    assert call["name"] == story.SEL.name
    await DBOS.send_async(run.workflow_id, story.CLIENT_RESULT, "result")
    assert story.PAUSE_ANSWER in await run.get_result()
    return seen
