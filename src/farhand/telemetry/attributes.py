"""The names of what spans say, and what each means here. All but `farhand.*` are those of OpenTelemetry."""

from enum import StrEnum
from typing import Final


class Name(StrEnum):
    """Attributes of spans."""

    OPERATION = "gen_ai.operation.name"
    AGENT = "gen_ai.agent.name"
    CONVERSATION = "gen_ai.conversation.id"
    PROVIDER = "gen_ai.provider.name"
    MODEL = "gen_ai.request.model"
    STREAM = "gen_ai.request.stream"
    FINISH = "gen_ai.response.finish_reasons"
    FIRST_TEXT = "gen_ai.response.time_to_first_chunk"
    INPUT_TOKENS = "gen_ai.usage.input_tokens"
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
    CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
    WRITTEN_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
    REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
    TOOL = "gen_ai.tool.name"
    TOOL_TYPE = "gen_ai.tool.type"
    CALL_ID = "gen_ai.tool.call.id"
    INSTRUCTIONS = "gen_ai.system_instructions"
    INPUT = "gen_ai.input.messages"
    OUTPUT = "gen_ai.output.messages"
    ARGUMENTS = "gen_ai.tool.call.arguments"
    RESULT = "gen_ai.tool.call.result"
    HTTP_METHOD = "http.request.method"
    HTTP_ROUTE = "http.route"
    HTTP_STATUS = "http.response.status_code"
    ERROR = "error.type"
    REQUEST_ID = "farhand.request.id"
    RUN_ID = "farhand.run.id"
    RUN_STATE = "farhand.run.state"
    RUN_TAKEN_OVER = "farhand.run.taken_over"
    TURN = "farhand.turn"
    PLACE = "farhand.tool.place"
    ATTEMPT = "farhand.call.attempt"
    OUTCOME = "farhand.call.outcome"
    CANCELLED = "farhand.cancelled"


MEANINGS: Final[dict[Name, str]] = {
    Name.OPERATION: "`invoke_agent`, `chat` or `execute_tool`.",
    Name.AGENT: "The agent's name.",
    Name.CONVERSATION: "The thread, as it is called in the store; not the name that a client gave it.",
    Name.PROVIDER: "What stands before the colon in the model's name.",
    Name.MODEL: "And what stands behind it.",
    Name.STREAM: "Always true: every model is read as it replies.",
    Name.FINISH: "Why the model stopped.",
    Name.FIRST_TEXT: "Seconds from asking until the first text, if there is any.",
    Name.INPUT_TOKENS: "Of one reply; of a stretch of work, those of its replies.",
    Name.OUTPUT_TOKENS: "Likewise.",
    Name.CACHED_TOKENS: "Likewise.",
    Name.WRITTEN_TOKENS: "Likewise.",
    Name.REASONING_TOKENS: "Likewise.",
    Name.TOOL: "The tool's name.",
    Name.TOOL_TYPE: "`function`.",
    Name.CALL_ID: "Our own id of the call.",
    Name.INSTRUCTIONS: "With `content=True`.",
    Name.INPUT: "With `content=True`.",
    Name.OUTPUT: "With `content=True`.",
    Name.ARGUMENTS: "With `content=True`; secrets are masked.",
    Name.RESULT: "With `content=True`; secrets are masked.",
    Name.HTTP_METHOD: "`_OTHER` if it is none of those that there are.",
    Name.HTTP_ROUTE: "The shape of the path; the path itself is in no span.",
    Name.HTTP_STATUS: "Of the answer.",
    Name.ERROR: "The code of a failure or a problem; never its text.",
    Name.REQUEST_ID: "What the answer has in `farhand-request`.",
    Name.RUN_ID: "The run.",
    Name.RUN_STATE: "At the end of the stretch: `waiting`, how it ended, or `running` if it was given away.",
    Name.RUN_TAKEN_OVER: "Whether the process that worked on it before is gone.",
    Name.TURN: "Which of the run's turns.",
    Name.PLACE: "Where the tool runs.",
    Name.ATTEMPT: "Which attempt.",
    Name.OUTCOME: "How a client's call ended.",
    Name.CANCELLED: "It was called off before its end.",
}

TOKENS: Final = {
    "input": Name.INPUT_TOKENS,
    "output": Name.OUTPUT_TOKENS,
    "cached": Name.CACHED_TOKENS,
    "cache_written": Name.WRITTEN_TOKENS,
    "reasoning": Name.REASONING_TOKENS,
}
"""By the fields of `Usage`."""
