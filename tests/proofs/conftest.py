"""What the proofs share: a PostgreSQL server, and an empty database for each."""

from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
