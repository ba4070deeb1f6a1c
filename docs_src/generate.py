"""The parts of the docs that come from the code: what stands between `<!-- generated: name -->` and `<!-- end -->`.

`python -m docs_src.generate` names the parts that are stale and ends with 1 if there are any; `--write` renews them.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import NODEFAULT, Struct, structs

import farhand
from docs_src import commands, observing, wire
from farhand import tool
from farhand.asgi.access.principal import SCOPES, USUAL
from farhand.asgi.access.quota import Quota
from farhand.client.client import ClientSettings
from farhand.client.events import NAMES
from farhand.client.patience import Patience
from farhand.client.thread import HandSettings, RunSettings
from farhand.core import call, effects, events, pieces, updates
from farhand.core.admission import OUTSIDE, OWNER, STRICT, AdmissionLimits
from farhand.core.errors import FarhandError, ToolError
from farhand.core.limits import Limits
from farhand.core.run import Phase
from farhand.core.step import ACCEPTS
from farhand.durable import Timing
from farhand.outbound import Reach
from farhand.plugins import Plugin
from farhand.tool import Settings

DOCS = Path(__file__).parents[1] / "docs"
MARKED = re.compile(r"(<!-- generated: ([^>]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

# What is said of a field whose own docstring is missing, or is not for readers of the docs.
SAID = {
    "Limits.input_tokens": "Tokens that all requests of the run have together.",
    "Limits.output_tokens": "Tokens that all replies of the run have together.",
    "Limits.total_tokens": "Both together. At a token limit the model is not asked again.",
    "Limits.argument_bytes": "Arguments of one call; larger ones are refused and the model is told.",
    "Limits.result_bytes": "Result of one call; a larger one is refused.",
    "Settings.title": "A name for people.",
    "Settings.version": "Your own version of the tool.",
    "Settings.tags": "Words of your own, to sort tools by.",
    "AdmissionLimits.name": "Characters of a name.",
    "AdmissionLimits.description": "Characters of a description.",
    "AdmissionLimits.definition_bytes": "Bytes of one definition.",
    "AdmissionLimits.enum": "Values of one `enum`.",
    "AdmissionLimits.pattern": "Characters of one regular expression.",
    "AdmissionLimits.cost": "Subschemas that references can make of the schema.",
    "AdmissionLimits.instance_bytes": "Bytes of a value to expect; `Limits.argument_bytes` refuses larger ones.",
    "AdmissionLimits.instance_depth": "Levels of a value; a deeper one is not valid.",
    "AdmissionLimits.require_description": "Refuse an empty description.",
}


def sentence(kind: type) -> str:
    """The first sentence of a class's docstring, on one line."""
    text = " ".join((inspect.getdoc(kind) or "").split())
    return re.split(r"(?<=[.!?]) ", text)[0]


def texts_of_fields(kind: type) -> dict[str, str]:
    """The docstring below each annotated field; what is said above stands in for a missing one."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for at, node in enumerate(body.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            after = body.body[at + 1] if at + 1 < len(body.body) else None
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            name = node.target.id
            found[name] = SAID.get(f"{kind.__name__}.{name}") or " ".join(str(text).split())
    silent = [name for name, text in found.items() if not text]
    assert not silent, f"nothing is said of {kind.__name__}: {', '.join(silent)}"
    return found


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def shown(value: object) -> str:
    """A default as it is written in code."""
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


def fields_of(kind: type[Struct], *without: str) -> str:
    """The names of a struct's fields."""
    return ", ".join(f"`{field.name}`" for field in structs.fields(kind) if field.name not in without) or "-"


def call_table() -> str:
    """The states of a call: a diagram, and a table of the same moves."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{state}" as {state.name.lower()}' for state in call.CallState]
    lines.append(f"    [*] --> {call.CallState.AWAITING_INPUT.name.lower()}")
    for state, moves in call.TABLE.items():
        for target in dict.fromkeys(moves.values()):
            changes = ", ".join(change for change in moves if moves[change] is target)
            lines.append(f"    {state.name.lower()} --> {target.name.lower()}: {changes}")
    lines += [f"    {state.name.lower()} --> [*]" for state in call.CallState if state in call.ENDED]
    states = [state for state in call.CallState if state not in call.ENDED]
    rows = ([f"`{change}`", *(str(call.TABLE[state].get(change, "")) for state in states)] for change in call.Change)
    return "\n".join([*lines, "```", "", table(["change", *states], rows)])


def run_phases() -> str:
    """Which events each phase of a run takes."""

    def rows() -> Iterator[list[str]]:
        for event in get_args(events.Event):
            first = event is events.Started
            taken = ["first event" if first else "yes" if event in ACCEPTS[phase] else "" for phase in Phase]
            yield [f"`{event.__name__}`", *([""] * len(Phase) if first else taken), sentence(event)]

    return table(["event", *Phase, "what it says"], rows())


def limits() -> str:
    """The limits of a run."""
    texts = texts_of_fields(Limits)
    rows = ([f"`{field.name}`", shown(field.default), texts[field.name]] for field in structs.fields(Limits))
    return table(["limit", "default", "meaning"], rows)


def settings_of(kind: type[Struct]) -> str:
    """The settings of a struct whose every field has a default."""
    texts = texts_of_fields(kind)
    rows = ([f"`{field.name}`", shown(field.default), texts[field.name]] for field in structs.fields(kind))
    return table([f"`{kind.__name__}(…)`", "default", "meaning"], rows)


def said_of(kind: type, head: str) -> str:
    """What is said of each field."""
    return table([head, "meaning"], ([f"`{name}`", text] for name, text in texts_of_fields(kind).items()))


def client_events() -> str:
    """What a client tells a program that listens."""
    rows = ([f"`{name}`", f"`{kind.__name__}`", fields_of(kind), sentence(kind)] for kind, name in NAMES.items())
    return table(["event", "class", "fields", "when"], rows)


def scopes() -> str:
    """What a principal may be allowed."""
    rows = ([f"`{name}`", "yes" if name in USUAL else "no", text] for name, text in SCOPES.items())
    return table(["scope", "usual", "allows to"], rows)


def admission_limits() -> str:
    """The limits of definitions, in the three profiles."""
    texts = texts_of_fields(AdmissionLimits)

    def rows() -> Iterator[list[str]]:
        for name, text in texts.items():
            values = [shown(getattr(profile, name)) for profile in (OUTSIDE, STRICT, OWNER)]
            yield [f"`{name}`", *values, text]

    return table(["limit", "`OUTSIDE`", "`STRICT`", "`OWNER`", "meaning"], rows())


def tool_settings() -> str:
    """The settings of a tool."""
    definition = tool.define("plain", description="A tool with nothing but defaults.").definition

    def rows() -> Iterator[list[str]]:
        for name, text in texts_of_fields(Settings).items():
            owner = definition.policy if hasattr(definition.policy, name) else definition
            yield [f"`{name}`", shown(getattr(owner, name)), text]

    return table(["setting", "default", "meaning"], rows())


def state_of(update: type[Struct]) -> str:
    """The state that an update tells, if it is about a call."""
    for field in structs.fields(update):
        if field.name == "state" and "call_id" in update.__struct_fields__:
            ended = ", ".join(f"`{state}`" for state in call.CallState if state in call.ENDED)
            return ended if field.default is NODEFAULT else f"`{field.default}`"
    return ""


def update_table() -> str:
    """Everything that a run tells."""

    def rows() -> Iterator[list[str]]:
        for update in get_args(updates.Update):
            text = sentence(update)
            meaning = text.removeprefix("Live: ")
            kept = "stored" if meaning == text else "live"
            of_call = ["state"] if "call_id" in update.__struct_fields__ else []
            names = fields_of(update, "seq", "at", *of_call)
            yield [
                f"`{update.__name__}`",
                f"`{structs_tag(update)}`",
                kept,
                state_of(update),
                names,
                meaning[:1].upper() + meaning[1:],
            ]

    return table(["class", "`type`", "kept", "state", "fields besides `seq` and `at`", "meaning"], rows())


def structs_tag(kind: type[Struct]) -> str:
    """The name under which a struct is written as JSON."""
    return str(kind.__struct_config__.tag)


def value_table(union: Any) -> str:
    """The members of a union of structs."""
    kinds = cast("tuple[type[Struct], ...]", get_args(union))
    return table(["value", "fields", "meaning"], ([f"`{k.__name__}`", fields_of(k), sentence(k)] for k in kinds))


def load_everything() -> None:
    """Import every module: what a class is the base of does not depend then on what was imported before."""
    for module in pkgutil.walk_packages(farhand.__path__, "farhand."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def exceptions() -> str:
    """The tree of exceptions, each with its code."""
    load_everything()

    def lines(kind: type[FarhandError], depth: int) -> Iterator[str]:
        path = "" if kind.__module__ == "farhand.core.errors" else f" From `{kind.__module__}`."
        yield f"{'  ' * depth}- `{kind.__name__}` (`{code_of(kind)}`): {sentence(kind)}{path}"
        for below in sorted(kind.__subclasses__(), key=lambda kind: kind.__name__):
            yield from lines(below, depth + 1)

    return "\n".join([*lines(FarhandError, 0), f"- `{ToolError.__name__}` (`tool_failed`): {sentence(ToolError)}", ""])


def code_of(kind: type[FarhandError]) -> str:
    """The code of a class, or the one that its constructor passes on."""
    passed = re.search(r'code="(\w+)"\)', inspect.getsource(kind.__init__)) if "__init__" in vars(kind) else None
    return passed[1] if passed else kind.code


PARTS: dict[str, Callable[[], str]] = {
    "metrics": observing.metrics,
    "span attributes": observing.attributes,
    "log fields": observing.log_fields,
    "call table": call_table,
    "run phases": run_phases,
    "limits": limits,
    "admission limits": admission_limits,
    "timing": lambda: settings_of(Timing),
    "tool settings": tool_settings,
    "updates": update_table,
    "events": lambda: value_table(events.Event),
    "effects": lambda: value_table(effects.Effect),
    "pieces": lambda: value_table(pieces.Piece),
    "exceptions": exceptions,
    "scopes": scopes,
    "quota": lambda: settings_of(Quota),
    "reach": lambda: settings_of(Reach),
    "patience": lambda: settings_of(Patience),
    "client settings": lambda: said_of(ClientSettings, "`Client(url, token=…, …)`"),
    "run settings": lambda: said_of(RunSettings, "`thread.run(message, …)`"),
    "hand settings": lambda: said_of(HandSettings, "`thread.run` and `thread.resume`"),
    "client events": client_events,
    "plugin": lambda: said_of(Plugin, "`Plugin(…)`"),
    "commands": commands.commands,
    "exit codes": commands.exit_codes,
    "native requests": wire.requests,
    "native problems": wire.problems,
    "native frames": wire.frames,
}


def renewed(page: str) -> str:
    """The page with its generated parts as the code has them now."""
    return MARKED.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[4]}", page)


def main(*, write: bool) -> int:
    """Renew the pages, or name those that are stale."""
    stale = [page for page in sorted(DOCS.rglob("*.md")) if renewed(page.read_text("utf-8")) != page.read_text("utf-8")]
    for page in stale:
        if write:
            page.write_text(renewed(page.read_text("utf-8")), encoding="utf-8")
        print("renewed" if write else "stale:", page.relative_to(DOCS.parent))
    return 0 if write else len(stale) > 0


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv[1:]))
