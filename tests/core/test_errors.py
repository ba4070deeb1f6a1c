"""The tree of exceptions: one base, a code each, and what they carry."""

from farhand.core import errors
from farhand.core.errors import (
    FarhandError,
    InvalidAnswer,
    InvalidInput,
    ModelBroke,
    ModelError,
    RunFailed,
    ToolError,
    TooMuch,
    WrongMethod,
)


def everything(kind: type[Exception]) -> list[type[Exception]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in everything(child))]


def test_every_exception_is_a_farhand_error_with_a_code_and_a_sentence() -> None:
    own = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    for kind in own:
        if kind is not ToolError:
            assert issubclass(kind, FarhandError)
            assert kind.code
        assert kind.__doc__


def test_no_two_refusals_share_a_code() -> None:
    leaves = [kind for kind in everything(FarhandError) if not kind.__subclasses__()]
    codes = [kind.code for kind in leaves if kind is not ModelBroke]
    assert len(set(codes)) == len(codes)


def test_the_tree_in_the_docstring_names_every_exception_of_the_module() -> None:
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert name in (errors.__doc__ or "")


def test_exceptions_carry_what_they_are_about() -> None:
    assert InvalidAnswer("no", ("problem",)).problems == ("problem",)
    assert RunFailed("no", "why").failure == "why"
    assert InvalidInput("no", ("problem",)).problems == ("problem",)
    assert WrongMethod("no", ("GET",)).allowed == ("GET",)
    assert TooMuch("no", retry_after=2.5).retry_after == 2.5
    model = ModelError("slow down", code="rate_limit", retryable=True)
    assert (str(model), model.code, model.retryable) == ("slow down", "rate_limit", True)
    assert ModelBroke("x").code == "model_broke_contract"
    tool = ToolError("no file", code="missing", path="/path", retryable=False, details={"a": 1})
    assert (tool.message, tool.code, tool.path, tool.retryable, tool.details) == (
        "no file",
        "missing",
        "/path",
        False,
        {"a": 1},
    )
