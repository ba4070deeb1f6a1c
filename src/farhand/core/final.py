"""The final answer, when it has to be a value of a given schema. A failed answer is mended by the model, not by us."""

from msgspec import Raw

from farhand.core.admission import OWNER
from farhand.core.failure import Failure
from farhand.core.messages import Text, UserMessage
from farhand.core.schema import compile_schema
from farhand.core.strict_json import BadJson, parse

NO_SCHEMA = Raw(b"null")
"""In place of an output schema: any text will do."""


def output_value(text: str) -> object:
    """The JSON value of an answer; one fenced block around it is taken off. Raises `BadJson`."""
    body = text.strip()
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json").strip()
    return parse(body)


def output_failure(schema: Raw, text: str) -> Failure | None:
    """Why the answer is not what was asked for, or None."""
    if schema == NO_SCHEMA:
        return None
    try:
        value = output_value(text)
    except BadJson as error:
        return Failure("output_invalid", f"The answer is not JSON: {error.reason}")
    problems = compile_schema(bytes(schema), OWNER).problems(value)
    if not problems:
        return None
    message = "; ".join(f"{problem.path or '(whole)'} {problem.message}" for problem in problems)
    return Failure("output_invalid", f"The answer breaks the schema: {message}", problems=problems)


def repair_request(failure: Failure) -> UserMessage:
    """What the model is asked when its answer has to be mended."""
    return UserMessage((Text(f"{failure.message}\nAnswer again, with nothing but JSON that fits the schema."),))
