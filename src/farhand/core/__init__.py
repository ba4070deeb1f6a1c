"""What a run is: values, tables and pure functions. No I/O, no clock, no ids, no logging; times and ids arrive in events."""
