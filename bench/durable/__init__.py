"""What it costs to keep runs: round trips, two replicas on one database, ten thousand paused runs. See ../README.md."""
