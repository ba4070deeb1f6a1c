"""Tools as their author writes them: `@tool` for a function of this server, `tool.define` for one that runs elsewhere.

A tool is a definition, perhaps with a function that runs it at its place. Without a function it is the client's.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from msgspec import DecodeError, Raw, json, structs

from farhand.core.admission import OWNER
from farhand.core.compiled import parameters_of
from farhand.core.definition import (
    FLOW,
    Absent,
    Approval,
    Definition,
    InvalidToolDefinitions,
    Place,
    Policy,
    SideEffect,
    check_definition,
    dump_definition,
    make_definition,
)
from farhand.core.errors import UsageError
from farhand.core.problem import Problem
from farhand.core.schema import argument_problems
from farhand.places.functions import Function, Judge, Signature, bind, bind_signature
from farhand.places.running import CallContext
from farhand.places.values import Codec, RawCodec, codec

In = TypeVar("In")
Out = TypeVar("Out")
Given = TypeVar("Given")
P = ParamSpec("P")
Choice = TypeVar("Choice", bound=StrEnum)

Schema: TypeAlias = Mapping[str, Any] | bytes | str
Run: TypeAlias = Callable[[In], Out | Awaitable[Out]] | Callable[[In, CallContext], Out | Awaitable[Out]]


class _Marked:
    """Says in a type's schema that its value is secret."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        return {**handler(core_schema), "secret": True}


Secret = Annotated[Given, _Marked()]
"""`Secret[str]`: a parameter or field that only the tool and the model see; a mask is shown to everybody else."""


class Settings(TypedDict, total=False):
    """What can be said of a tool besides its name, description and schemas."""

    effect: Literal["pure", "idempotent", "once"]
    """`once` (default): never dispatched twice. `idempotent` and `pure` may be retried."""
    timeout: float | None
    """Seconds the tool may run; the run's limits have the default for its place."""
    approval_timeout: float | None
    """Seconds a person may take to decide."""
    retries: int
    """Further attempts after a failure; only for `pure` and `idempotent`."""
    absent: Literal["wait", "fallback", "fail", "retry"] | None
    """What happens when no client is there to run it."""
    fallback: str | None
    """What the model is told then; `{tool}` is its name."""
    title: str | None
    version: str | None
    deprecated: str | None
    """Why, and what to use instead; developers see it when the tool is called."""
    tags: Sequence[str]
    examples: Sequence[Any]
    """Arguments as they may look."""
    lazy: bool
    """The model is shown it only when it asks for it."""
    reads_private: bool
    """Its results may hold what is not for everybody."""
    takes_untrusted: bool
    """Its results may hold the words of strangers."""
    sends_out: bool
    """It may carry data to somebody else. A run that has done the other two asks a person before it does this."""


class Tool(Generic[In, Out]):
    """A definition, where it runs, and the function that runs it there, if this process has one."""

    def __init__(
        self,
        definition: Definition,
        *,
        reads: Codec,
        writes: Codec | None,
        function: Function | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.definition = definition
        self.function = function
        self.judge = judge
        self._reads = reads
        self._writes = writes

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.definition.name

    @property
    def place(self) -> Place:
        """Where it runs."""
        return self.definition.place

    def server(self, function: "Run[In, Out]") -> "Tool[In, Out]":
        """This tool, run by `function` in the server's process. The function takes the whole input."""
        return self._at(Place.SERVER, function)

    def client(self, function: "Run[In, Out]") -> "Tool[In, Out]":
        """This tool, run by `function` in the client, here the program that starts the run."""
        return self._at(Place.CLIENT, function)

    def dump(self, *, wrapped: bool = False) -> dict[str, Any]:
        """The definition as JSON objects: plain, or as `{"type": "function", "function": {…}}`."""
        return dump_definition(self.definition, wrapped=wrapped)

    def check(self, arguments: Any) -> tuple[Problem, ...]:
        """What is wrong with these JSON arguments; empty if nothing is. Calls are checked without asking."""
        return argument_problems(parameters_of(self.definition), arguments)

    def load(self, arguments: Any) -> In:
        """Checked JSON arguments as the tool's input type."""
        return self._reads.load(arguments)

    def read(self, result: Any) -> Out:
        """A JSON result as the tool's output type."""
        return result if self._writes is None else self._writes.load(result)

    def of_client(self) -> "Tool[In, Out]":
        """The same tool, brought by a client: it is the client's to hide, and what it returns is a client's word."""
        if self.definition.source == "client":
            return self
        definition = make_definition(structs.asdict(self.definition) | {"source": "client"})
        return Tool(definition, reads=self._reads, writes=self._writes, function=self.function, judge=self.judge)

    def _at(self, place: Place, function: Callable[..., Any]) -> "Tool[In, Out]":
        definition = make_definition(structs.asdict(self.definition) | {"place": place, "source": "owner"})
        bound = bind(function, self._reads, self._writes)
        return Tool(definition, reads=self._reads, writes=self._writes, function=bound, judge=self.judge)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r} at the {self.place}>"


class FunctionTool(Tool[dict[str, Any], Out], Generic[P, Out, Given]):
    """A tool made of a function; calling it calls the function, which gives `Given`: `Out`, or a coroutine of it."""

    wrapped: Callable[P, Given]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Given:
        return self.wrapped(*args, **kwargs)


class ToolDecorator(Protocol):
    """What `@tool(…)` gives: makes a tool of a sync or async function."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, Out]], /
    ) -> FunctionTool[P, Out, Coroutine[Any, Any, Out]]: ...

    @overload
    def __call__(self, function: Callable[P, Out], /) -> FunctionTool[P, Out, Out]: ...


class ToolMaker:
    """What `tool` is: a decorator, and `tool.define` for a definition without a function."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, Out]], /
    ) -> FunctionTool[P, Out, Coroutine[Any, Any, Out]]: ...

    @overload
    def __call__(self, function: Callable[P, Out], /) -> FunctionTool[P, Out, Out]: ...

    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool | Callable[..., bool | Awaitable[bool]] = False,
        output: type[Any] | Schema | None = None,
        **settings: Unpack[Settings],
    ) -> ToolDecorator: ...

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool | Callable[..., bool | Awaitable[bool]] = False,
        output: type[Any] | Schema | None = None,
        **settings: Unpack[Settings],
    ) -> Any:
        """Make a server tool of a function: its signature and docstring are the definition."""

        def make(function: Callable[..., Any]) -> FunctionTool[..., Any, Any]:
            signature = Signature(function)
            writes = signature.output if output is None else codec(output, output=True)
            definition = _definition(
                name or signature.name,
                description or signature.description,
                reads=signature.input,
                writes=writes,
                needs_approval=needs_approval,
                place=Place.SERVER,
                settings=settings,
            )
            judge = Judge(needs_approval, signature.input, spread=True) if callable(needs_approval) else None
            bound = bind_signature(function, signature, writes)
            made = FunctionTool[..., Any, Any](
                definition, reads=signature.input, writes=writes, function=bound, judge=judge
            )
            made.wrapped = function
            made.__doc__ = function.__doc__
            return made

        return make if function is None else make(function)

    @overload
    def define(
        self,
        name: str,
        *,
        input: type[In],
        output: type[Out],
        description: str = "",
        needs_approval: bool | Callable[[In], bool | Awaitable[bool]] = False,
        **settings: Unpack[Settings],
    ) -> Tool[In, Out]: ...

    @overload
    def define(
        self,
        name: str,
        *,
        input: type[In],
        output: Schema | None = None,
        description: str = "",
        needs_approval: bool | Callable[[In], bool | Awaitable[bool]] = False,
        **settings: Unpack[Settings],
    ) -> Tool[In, Any]: ...

    @overload
    def define(
        self,
        name: str,
        *,
        input: Schema | None = None,
        output: type[Out],
        description: str = "",
        needs_approval: bool | Callable[[dict[str, Any]], bool | Awaitable[bool]] = False,
        **settings: Unpack[Settings],
    ) -> Tool[dict[str, Any], Out]: ...

    @overload
    def define(
        self,
        name: str,
        *,
        input: Schema | None = None,
        output: Schema | None = None,
        description: str = "",
        needs_approval: bool | Callable[[dict[str, Any]], bool | Awaitable[bool]] = False,
        **settings: Unpack[Settings],
    ) -> Tool[dict[str, Any], Any]: ...

    def define(
        self,
        name: str,
        *,
        input: Any = None,  # noqa: A002
        output: Any = None,
        description: str = "",
        needs_approval: bool | Callable[[Any], bool | Awaitable[bool]] = False,
        **settings: Unpack[Settings],
    ) -> Tool[Any, Any]:
        """A definition that says nothing of where it runs; give it a place with `.server(fn)` or `.client(fn)`.

        Passed to an agent as it is, it is a client tool.
        """
        reads = RawCodec({"type": "object"}) if input is None else codec(input)
        writes = None if output is None else codec(output, output=True)
        text = description or _described(input)
        definition = _definition(
            name,
            text.strip(),
            reads=reads,
            writes=writes,
            needs_approval=needs_approval,
            place=Place.CLIENT,
            settings=settings,
        )
        judge = Judge(needs_approval, reads, spread=False) if callable(needs_approval) else None
        return Tool(definition, reads=reads, writes=writes, judge=judge)


tool = ToolMaker()
"""Make tools: `@tool` above a function, `@tool(needs_approval=True)`, or `tool.define("name", input=…)`."""


def _definition(
    name: str,
    description: str,
    *,
    reads: Codec,
    writes: Codec | None,
    needs_approval: object,
    place: Place,
    settings: Settings,
) -> Definition:
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:  # a misspelt `needs_approval` must not pass for none
        raise UsageError(f"tool {name!r} has no setting {', '.join(sorted(unknown))}")
    approval = Approval.JUDGED if callable(needs_approval) else Approval.ALWAYS if needs_approval else Approval.NEVER
    absent = settings.get("absent")
    policy = Policy(
        approval=approval,
        effect=_one_of(SideEffect, "effect", settings.get("effect", "once")),
        timeout=settings.get("timeout"),
        approval_timeout=settings.get("approval_timeout"),
        retries=settings.get("retries", 0),
        absent=None if absent is None else _one_of(Absent, "absent", absent),
        fallback=settings.get("fallback"),
        **{label: bool(settings.get(label)) for label in FLOW},
    )
    try:
        definition = make_definition(
            {
                "name": name,
                "description": description,
                "parameters": reads.schema,
                "output": None if writes is None else writes.schema,
                "title": settings.get("title"),
                "place": place,
                "source": "owner",
                "policy": policy,
                "version": settings.get("version"),
                "deprecated": settings.get("deprecated"),
                "tags": tuple(settings.get("tags", ())),
                "examples": tuple(Raw(json.encode(example)) for example in settings.get("examples", ())),
                "lazy": bool(settings.get("lazy")),
            }
        )
    except DecodeError as error:
        problem = Problem("", f"a schema is not JSON: {error}", "json")
        raise InvalidToolDefinitions((problem,), what=f"definition of tool {name!r}") from error
    check_definition(definition, OWNER)
    return definition


def _one_of(kind: type[Choice], setting: str, value: str) -> Choice:
    try:
        return kind(value)
    except ValueError:
        raise UsageError(f"{setting} is {value!r}; it must be one of {', '.join(kind)}") from None


def _described(kind: Any) -> str:
    """What the author of an input type says of it; what Python makes up for a dataclass does not count."""
    text = (getattr(kind, "__doc__", None) or "") if isinstance(kind, type) else ""
    made_up = is_dataclass(kind) and text.startswith(f"{getattr(kind, '__name__', '')}(")
    return "" if made_up else inspect.cleandoc(text)
