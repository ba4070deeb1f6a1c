"""The suite that every store has to pass.

A store of your own takes it like this, with pytest and pytest-asyncio in its auto mode:

    from farhand.testing.stores import StoreSuite

    @pytest.fixture
    async def store():
        store = MyStore(...)       # on no data at all
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    async def other(store):
        other = MyStore(...)       # on the same data, as another replica would have it; not open yet
        yield other
        await other.close()

    class TestMyStore(StoreSuite):
        pass

Nothing is shared between two tests. A store that only one handle can use lets the fixture `other` skip its tests. For
readable failures, call `pytest.register_assert_rewrite("farhand.testing.stores")` before the import.
"""

from farhand.testing.store_presence import PresenceSuite
from farhand.testing.store_reads import ReadSuite
from farhand.testing.store_upkeep import UpkeepSuite
from farhand.testing.store_work import WorkSuite
from farhand.testing.store_writes import WriteSuite


class StoreSuite(WriteSuite, ReadSuite, WorkSuite, PresenceSuite, UpkeepSuite):
    """What a store promises, one sentence a test."""
