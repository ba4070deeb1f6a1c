"""What a docstring says of a function and its parameters. Reads the Google, NumPy and Sphinx styles; nothing else."""

import inspect
import re

_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields|examples?|notes?)\s*:?\s*$", re.IGNORECASE
)
_GOOGLE = re.compile(r"^(?P<name>\*{0,2}\w+)\s*(?:\(.*?\))?\s*:\s*(?P<text>.*)$")
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?(?P<name>\w+)\s*:\s*(?P<text>.*)$")
_PARAMETERS = ("args", "arguments", "parameters", "params")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description, and one for each parameter that has one."""
    lines = inspect.cleandoc(text or "").splitlines()
    summary: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, current = "", ""
    for position, line in enumerate(lines):
        sphinx = _SPHINX.match(line.strip())
        heading = _SECTION.match(line)
        if heading is not None:
            section, current = heading.group(1).lower(), ""
        elif sphinx is not None:
            section, current = "sphinx", sphinx.group("name")
            parameters[current] = [sphinx.group("text")]
        elif line.startswith(":"):
            section = "other"
        elif not section:
            summary.append(line)
        elif section in _PARAMETERS:
            current = _parameter_line(line, lines[position + 1 :], parameters, current)
        elif section == "sphinx" and line.startswith(" "):
            parameters[current].append(line.strip())
    found = {name: " ".join(part for part in parts if part) for name, parts in parameters.items()}
    return "\n".join(summary).strip(), {name: described for name, described in found.items() if described}


def _parameter_line(line: str, rest: list[str], parameters: dict[str, list[str]], current: str) -> str:
    """Read one line of a section of parameters; returns the parameter that the next line may continue."""
    stripped = line.strip()
    if not stripped or set(stripped) == {"-"}:
        return current
    google = _GOOGLE.match(stripped)
    if google is not None and line.startswith(" ") and _indent(line) <= 4:
        name = google.group("name").lstrip("*")
        parameters[name] = [google.group("text")]
        return name
    numpy = re.match(r"^(\w+)\s*(?::.*)?$", line)
    if numpy is not None and (not rest or not rest[0].strip() or rest[0].startswith(" ")):
        parameters[numpy.group(1)] = []
        return numpy.group(1)
    if current in parameters and line.startswith(" "):
        parameters[current].append(stripped)
    return current


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
