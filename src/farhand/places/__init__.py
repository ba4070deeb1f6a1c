"""Where a tool runs: a call in, a result out. Here: functions of this process, for the server and for a client."""
