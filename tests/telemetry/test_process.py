"""What the operating system says of a process, and nothing where it says nothing."""

import os
from pathlib import Path

from farhand.telemetry.process import process_meters


def numbers(self: Path) -> dict[str, float]:
    lines = [line for meter in process_meters(self) for line in meter.samples()]
    return {name: float(value) for name, value in (line.split() for line in lines)}


def test_memory_and_descriptors_are_those_of_this_process() -> None:
    before = numbers(Path("/proc/self"))
    assert before["process_resident_memory_bytes"] > 1 << 20
    reading, writing = os.pipe()
    after = numbers(Path("/proc/self"))
    os.close(reading)
    os.close(writing)
    assert after["process_open_fds"] == before["process_open_fds"] + 2


def test_where_the_system_says_nothing_there_is_no_number(tmp_path: Path) -> None:
    assert set(numbers(tmp_path)) == {"process_cpu_seconds_total", "process_start_time_seconds"}
