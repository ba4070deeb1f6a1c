"""The generated parts of the page about the command line: every command with what it takes, and the exit codes."""

from collections.abc import Iterator
from typing import Any

from farhand.cli.app import app
from farhand.cli.exits import MEANINGS

SHARED = ("--token", "--token-file", "--json")
"""Options that are told once, where many commands have them."""


def commands() -> str:
    """Every command."""
    return "\n".join(line for name, command in commands_of(app, "farhand") for line in _section(name, command))


def exit_codes() -> str:
    """What the shell sees."""
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | means |", "| --- | --- |", *rows, ""])


def commands_of(level: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands below a group, those of groups in it too."""
    for word in sorted(word for word in level if not word.startswith("-")):
        below = level[word]
        if below.default_command is None:
            yield from commands_of(below, f"{name} {word}")
        else:
            yield f"{name} {word}", below


def arguments_of(command: Any) -> list[Any]:
    """What a command takes."""
    return [each for each in command.assemble_argument_collection(parse_docstring=True) if each.show]


def _section(name: str, command: Any) -> Iterator[str]:
    arguments = arguments_of(command)
    positional = [each for each in arguments if not each.name.startswith("-")]
    words = [name, *(_word(each) for each in positional)]
    options = [each for each in arguments if each.name.startswith("-")]
    yield f"### {name}\n"
    yield f"`{' '.join(words)}{' [options]' if options else ''}`\n"
    yield f"{' '.join(command.help.partition('Parameters' + chr(10))[0].split())}\n"
    own = [each for each in arguments if each.name not in SHARED or name == "farhand serve"]
    if own:
        yield "| argument or option | default | meaning |"
        yield "| --- | --- | --- |"
    for each in own:
        text = " ".join(each.parameter.help.split()).replace("|", "\\|")
        yield f"| {_name(each)} | {_default(each)} | {text} |"
    if own:
        yield ""
    shared = [f"`{each.name}`" for each in options if each not in own]
    if shared:
        yield f"Also {', '.join(shared)}.\n"


def _word(argument: Any) -> str:
    name = argument.name.upper()
    several = "…" if str(argument.field_info.kind.name) == "VAR_POSITIONAL" else ""
    return f"{name}{several}" if argument.required else f"[{name}{several}]"


def _name(argument: Any) -> str:
    if not argument.name.startswith("-"):
        return f"`{argument.name.upper()}`"
    choices = argument.get_choices()
    chosen = ", ".join(f"`{choice}`" for choice in choices if choice) if choices else ""
    return f"`{argument.name}`" + (f" {chosen}" if chosen else "")


def _default(argument: Any) -> str:
    if argument.required:
        return "needed"
    value = argument.field_info.default
    shown = "" if value in ("", (), False, None) or value is argument.field_info.empty else f"`{value}`"
    variable = ", ".join(f"`${name}`" for name in argument.parameter.env_var or ())
    return " or ".join(part for part in (variable, shown) if part)
