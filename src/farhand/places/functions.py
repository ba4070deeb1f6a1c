"""Python functions as tools: what a signature says, and how a call reaches the function. It decides nothing."""

import asyncio
import contextvars
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Union, get_args, get_type_hints

from msgspec import Raw, json

from farhand.core.errors import ToolError, UsageError
from farhand.places.docstring import read_docstring
from farhand.places.running import Accepted, CallContext
from farhand.places.values import Codec, codec, dump, dump_result, strip_titles, validated

_EXACT = (str, int, bool)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_threads = ThreadPoolExecutor(64, "farhand-tool")
"""For tools that block. A thread cannot be stopped, so one that hangs keeps its place."""
_PLAIN_RESULTS = (None, type(None), Any, inspect.Signature.empty)


class Signature:
    """A function whose parameters are the tool's arguments: its name, description, schemas and argument reader."""

    def __init__(self, function: Callable[..., Any]) -> None:
        hints = _hints(function)
        written, given = _without_partial(function)
        self.name: str = getattr(written, "__name__", "")
        self.description, described = read_docstring(written.__doc__)
        self.context_name = _context_name(function, hints)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name == self.context_name or parameter.name in given:
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise UsageError(f"tool {self.name!r}: parameter {parameter.name!r} must be one that has a name")
            fields[parameter.name] = (hints.get(parameter.name, Any), parameter.default, described.get(parameter.name))
        self.input = _Arguments(self.name, fields)
        returned = _result_of(hints.get("return"))
        self.output = None if returned in _PLAIN_RESULTS or _is_part(returned) else codec(returned, output=True)


class _Arguments:
    """A codec from one JSON object to keyword arguments."""

    def __init__(self, name: str, fields: Mapping[str, tuple[Any, Any, str | None]]) -> None:
        if not fields:
            self._adapter = None
            self.schema = Raw(b'{"type":"object","properties":{},"additionalProperties":false}')
            return
        from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model  # a signature's types need it
        from pydantic.fields import FieldInfo

        class Arguments(BaseModel):
            model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)

        definitions: dict[str, Any] = {}
        for field, (annotation, default, description) in fields.items():
            # The alias keeps names that pydantic takes for its own, such as `schema` or `copy`.
            more: dict[str, Any] = {"alias": field} | ({} if description is None else {"description": description})
            if isinstance(default, FieldInfo):  # `days: int = Field(3, ge=1)`, as in a model
                annotation, info = Annotated[annotation, default], Field(**more)
            else:
                info = Field(... if default is inspect.Parameter.empty else default, **more)
            definitions[f"p_{field}"] = (annotation, info)
        self._names = tuple(fields)
        kinds = {field: annotation for field, (annotation, _, _) in fields.items()}
        self._exact = kinds if all(kind in _EXACT for kind in kinds.values()) else None
        try:
            self._adapter = TypeAdapter(create_model(name, __base__=Arguments, **definitions))
            schema = strip_titles(self._adapter.json_schema(by_alias=True), name)
        except Exception as error:
            raise UsageError(f"tool {name!r}: its parameters have no JSON Schema: {error}") from error
        schema.pop("description", None)
        self.schema = Raw(json.encode(schema))

    def load(self, value: Any) -> dict[str, Any]:
        """Keyword arguments, defaults filled in, as the signature's types."""
        if self._adapter is None:
            return {}
        if self._exact is not None and len(value) == len(self._exact):
            for name, kind in self._exact.items():
                if type(value[name]) is not kind:
                    break
            else:  # checked values of plain types need no conversion
                return dict(value)
        loaded = validated(self._adapter, value).__dict__
        return {name: loaded[f"p_{name}"] for name in self._names}

    def dump(self, value: Any) -> bytes:
        """Arguments as JSON."""
        return dump(value)


class Function:
    """A Python function that runs a tool: checked arguments in, JSON out."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        reads: Codec,
        writes: Codec | None,
        spread: bool,
        context_name: str | None,
    ) -> None:
        self.function = function
        self._reads = reads
        self._write = writes.dump if writes is not None else dump
        self._spread = spread
        self._context_name = context_name
        self.wants_context = context_name is not None
        """Whether it takes a `CallContext`."""
        self._async = is_async(function)

    async def run(self, arguments: Any, context: CallContext | None) -> tuple[bytes, bool]:
        """The result as JSON, and whether it is a list of parts."""
        return dump_result(await self.begin(arguments, context), self._write)

    def begin(self, arguments: Any, context: CallContext | None) -> Awaitable[Any]:
        """The function's work, to be awaited; it gives what the function returns."""
        try:
            value = self._reads.load(arguments)
        except ValueError as error:  # the type's own validators, which a JSON Schema cannot say
            raise ToolError(_refusal(error), code="invalid_arguments", retryable=False) from error
        keywords: dict[str, Any] = value if self._spread else {}
        if self._context_name is not None:
            keywords[self._context_name] = context
        positional = () if self._spread else (value,)
        if self._async:
            return self.function(*positional, **keywords)
        return in_thread(self.function, *positional, **keywords)

    def write(self, result: Any) -> tuple[bytes, bool]:
        """What the function returned as JSON, and whether it is a list of parts."""
        return dump_result(result, self._write)


def bind(function: Callable[..., Any], reads: Codec, writes: Codec | None) -> Function:
    """A function that takes the whole input as its first parameter, and perhaps a context.

    The context's parameter is the one of that type, or else the second one that has to be given.
    """
    name = _context_name(function, _hints(function)) or _second(function)
    return Function(function, reads=reads, writes=writes, spread=False, context_name=name)


def bind_signature(function: Callable[..., Any], signature: Signature, writes: Codec | None) -> Function:
    """A function that takes the input's properties as its parameters."""
    return Function(function, reads=signature.input, writes=writes, spread=True, context_name=signature.context_name)


class Judge:
    """A tool's own function that says whether a person must decide: `lambda amount: amount > 100`.

    It takes whichever of the input's properties it names, or, for a tool with one input value, that value; and a
    `CallContext` if it has a parameter of that type.
    """

    def __init__(self, predicate: Callable[..., Any], reads: Codec, *, spread: bool) -> None:
        self._predicate = predicate
        self._reads = reads
        self._context_name = _context_name(predicate, _hints(predicate))
        parameters = inspect.signature(predicate).parameters.values()
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self._names = None if takes_all or not spread else {parameter.name for parameter in parameters}
        self._spread = spread

    async def needed(self, arguments: Any, context: CallContext) -> bool:
        """Whether a person must decide about these arguments."""
        value = self._reads.load(arguments)
        keywords: dict[str, Any] = {} if self._context_name is None else {self._context_name: context}
        if self._spread:
            names = self._names
            keywords.update((name, item) for name, item in value.items() if names is None or name in names)
            verdict = self._predicate(**keywords)
        else:
            verdict = self._predicate(value, **keywords)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def takes_two(function: Callable[..., Any]) -> bool:
    """Whether it wants a second value beside the first one."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a callable without a signature
        return False
    wanted = [one for one in parameters if one.default is one.empty and one.kind in _POSITIONAL]
    return len(wanted) == 2


def _second(function: Callable[..., Any]) -> str | None:
    """The name of the second value that a function wants, if it wants two and that one can be given by its name."""
    if not takes_two(function):
        return None
    [_, second] = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind in _POSITIONAL
    ]
    return second.name if second.kind is second.POSITIONAL_OR_KEYWORD else None


async def in_thread(function: Callable[..., Any], *positional: Any, **keywords: Any) -> Any:
    """Run a function that blocks in a thread, in this task's context."""
    context = contextvars.copy_context()

    def work() -> Any:
        try:
            return context.run(function, *positional, **keywords)
        except (StopIteration, SystemExit) as error:  # a future cannot hold the one; a thread is no program to end
            raise RuntimeError(f"the tool raised {type(error).__name__}") from error

    result: Any = await asyncio.get_running_loop().run_in_executor(_threads, work)
    return await result if inspect.isawaitable(result) else result


def _begin_anew() -> None:
    """A forked process has none of the threads that the pool would count on."""
    global _threads
    _threads = ThreadPoolExecutor(64, "farhand-tool")


os.register_at_fork(after_in_child=_begin_anew)


def _without_partial(function: Callable[..., Any]) -> tuple[Callable[..., Any], Mapping[str, Any]]:
    """The function as it was written, and the arguments that the program gave it: no business of the model."""
    return (function.func, function.keywords) if isinstance(function, functools.partial) else (function, {})


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    function, _ = _without_partial(function)
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise UsageError(f"{function!r} yields; a tool returns one result, and reports with CallContext.progress")
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise UsageError(f"the annotations of {function!r} cannot be read: {error}") from error


def _context_name(function: Callable[..., Any], hints: Mapping[str, Any]) -> str | None:
    for name in inspect.signature(function).parameters:
        if hints.get(name) is CallContext or CallContext in get_args(hints.get(name)):
            return name
    return None


def _refusal(error: ValueError) -> str:
    """What a type's validators said: path and reason of each problem, without pydantic's own dressing."""
    problems: Callable[[], list[dict[str, Any]]] | None = getattr(error, "errors", None)
    if problems is None:
        return str(error)
    return "; ".join(f"Parameter {'.'.join(map(str, one['loc'])) or '(all)'}: {one['msg']}" for one in problems())


def _result_of(kind: Any) -> Any:
    """What a function returns as its tool's result: `Picture | Accepted` is a picture, sooner or later."""
    if kind is Accepted:
        return None
    kinds: tuple[Any, ...] = get_args(kind)
    if Accepted not in kinds:
        return kind
    return Union[tuple([each for each in kinds if each is not Accepted])]  # noqa: UP007  made of a list


def _is_part(kind: Any) -> bool:
    """Whether results are message parts, or lists of them: those go to the model as they are."""
    return getattr(kind, "__module__", "") == "farhand.core.messages" or any(map(_is_part, get_args(kind)))
