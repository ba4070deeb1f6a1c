"""What the tests of stores share: a PostgreSQL server, and an empty database for each test."""

from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
