"""The commands and where they are. None is loaded before it is asked for, so that help is there at once."""

from typing import Any

from cyclopts import App, Parameter

COMMANDS = {
    "chat": (
        "farhand.cli.chat:chat",
        "Chat with an agent, at a server or of this machine.",
        "With a message it is one run, and ends with 1 unless that ends well. Without a terminal, lines are read from "
        "the standard input: what you say, and what you answer. Ctrl-C calls the run off, once more leaves it to "
        "itself; /help tells the rest.",
    ),
    "completion": (
        "farhand.cli.completion:completion",
        "Print a script with which a shell completes the words of `farhand`.",
        'bash: put `eval "$(farhand completion bash)"` into ~/.bashrc. zsh: write it to a file `_farhand` in a folder '
        "of your fpath. fish: write it to ~/.config/fish/completions/farhand.fish.",
    ),
    "demo": (
        "farhand.cli.demo:demo",
        "Serve an agent to try things with. No key and no network are needed.",
        "",
    ),
    "doctor": (
        "farhand.cli.doctor:doctor",
        "Look for what is wrong, and say what to do.",
        "It looks at what is installed, at limits of this machine, at a store, and at a server: whether it is there, "
        "its clock, who listens in, and what your token is good for. It ends with 1 if something is broken.",
    ),
    "runs": ("farhand.cli.runs:runs", "Runs at a server: look, watch, decide, answer, cancel.", ""),
    "serve": (
        "farhand.cli.serve:serve",
        "Serve agents until the process is told to stop.",
        "Ctrl-C and SIGTERM stop it in order; runs that are under way then go on at the next start. Without any way to "
        "be known, a server on 127.0.0.1 makes a token up, and no other address is served.",
    ),
    "store": ("farhand.cli.store:store", "Look after a store, the place where runs are kept.", ""),
    "thread": ("farhand.cli.thread:thread", "A conversation: show it, export it, replay it.", ""),
    "tools": ("farhand.cli.tools:tools", "The tools of an agent, here or at a server.", ""),
}
"""By name: what to load, what it does in a line, and what else its help says."""


def _version() -> str:
    from farhand import __version__

    return __version__


def _default(value: Any) -> str | None:
    """A default as help shows it; one that says nothing is not shown."""
    return None if value in ("", (), False, None) else str(value)


app = App(
    name="farhand",
    help="AI agents whose tools are defined once and run where they belong.",
    help_format="plaintext",
    help_epilogue="Every command takes --debug, which shows where an error comes from.",
    default_parameter=Parameter(show_default=_default),
    version=_version,
)
for _name, (_path, _line, _more) in COMMANDS.items():
    app.command(_path, name=_name, help=f"{_line}\n\n{_more}".strip())
