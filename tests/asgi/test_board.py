"""How the server is doing, for those who operate it and for nobody else."""

import asyncio

from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.tokens import Tokens
from farhand.core.errors import StoreAway
from farhand.stores.memory import MemoryStore
from tests.asgi.story import ANN, office

OLGA = "olga-operates-the-server-of-this-test"
PEOPLE = Tokens({ANN: "ann", OLGA: Principal("olga", EVERYTHING)})


class Away(MemoryStore):
    """A store that stops to answer."""

    away = False

    async def awaited(self) -> int:
        if self.away:
            raise StoreAway("it is away")
        return await super().awaited()


async def test_the_status_says_what_is_open_and_what_waits() -> None:
    async with office(authenticate=PEOPLE) as place:
        await place.got("POST", "/threads/t1/runs", {"input": "pick"})
        async with asyncio.timeout(5), place.stream("GET", "/threads/t1/updates") as events:
            await events.next("run-waiting")
            said = await place.got("GET", "/status", token=OLGA)
        assert said.pop("store_ms") >= 0
        assert said.pop("began") > 0
        assert said.pop("worker") == place.app.runner.worker
        assert said == {"status": "ok", "runs_held": 0, "streams": 1, "sockets": 0, "calls_waiting": 1}
        place.app.desk.draining = True
        assert (await place.got("GET", "/status", token=OLGA))["status"] == "draining"


async def test_a_store_that_does_not_answer_is_away_and_the_numbers_come_all_the_same() -> None:
    store = Away()
    async with office(authenticate=PEOPLE, store=store) as place:  # type: ignore[arg-type]
        store.away = True
        said = await place.got("GET", "/status", token=OLGA)
        metrics = await place.ask("GET", "/metrics", token=OLGA)
        store.away = False
    assert (said["status"], said["calls_waiting"], said["store_ms"]) == ("away", None, None)
    assert metrics.status_code == 200
    assert "farhand_calls_waiting" not in metrics.text


async def test_nobody_else_is_told() -> None:
    async with office(authenticate=PEOPLE) as place:
        for path in ("/status", "/metrics"):
            assert (await place.ask("GET", path, token=ANN)).status_code == 403
            assert (await place.ask("GET", path, token="")).status_code == 401
