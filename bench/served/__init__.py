"""What it costs to be served over HTTP: round trips, streams, idle streams, bad neighbours. See ../README.md."""
