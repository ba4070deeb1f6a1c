"""What a run is: values, tables and pure functions. No I/O, clock, ids or logging; times and ids arrive in events."""
