"""Authors are told what is unwise and which provider will not take it; nothing is refused."""

from farhand.core.definition import Approval, Policy, SideEffect, make_definition
from farhand.lint import lint_tools

CITY = {"type": "string", "description": "Name of the city"}


def tool(name="get_weather", description="Current weather", **schema):
    fields = {"type": "object", "properties": {"city": CITY}, "required": ["city"], "additionalProperties": False}
    return make_definition(name=name, description=description, parameters={**fields, **schema})


def found(*tools):
    return [(hint.path, hint.provider) for hint in lint_tools(tools)]


def test_a_careful_tool_gets_no_hint():
    assert lint_tools([tool()]) == []


def test_a_tool_without_schema_is_hinted_at():
    bare = make_definition(name="get_it", description="Get it", parameters={"type": "object"})
    assert found(bare) == [("/parameters", None)]


def test_parameters_without_description_are_named_at_every_level():
    inner = {"type": "object", "properties": {"x": {"type": "string"}, "y": True, "k": {"const": 1}}}
    inner |= {"additionalProperties": False, "required": ["x", "y", "k"]}
    hints = found(tool(properties={"city": {"type": "array", "items": inner}}))
    assert hints == [
        ("/parameters/properties/city", None),
        ("/parameters/properties/city/items/properties/x", None),
        ("/parameters/properties/city/items/properties/y", None),
    ]


def test_a_destructive_name_without_approval_is_hinted_at():
    assert found(tool("delete_file")) == [("/name", None)]
    assert found(tool("sendMoney")) == [("/name", None)]
    assert found(tool("undeleted_files")) == []
    parameters = tool().parameters
    for policy in (Policy(approval=Approval.ALWAYS), Policy(effect=SideEffect.PURE)):
        assert found(make_definition(name="delete_it", description="x", parameters=parameters, policy=policy)) == []


def test_names_wider_than_the_portable_rule_are_hinted_at():
    assert found(tool("my-tool")) == found(tool("1st")) == found(tool("a" * 65)) == [("/name", None)]


def test_a_tool_without_description_is_hinted_at():
    assert found(tool(description=" ")) == [("/description", None)]


def test_more_than_ten_visible_tools_are_hinted_at():
    assert found(*[tool(f"tool_{at}") for at in range(10)]) == []
    (hint,) = lint_tools([tool(f"tool_{at}") for at in range(11)])
    assert "11 tools" in hint.message


def test_other_properties_and_optional_ones_are_hinted_at():
    schema = {"type": "object", "properties": {"city": CITY}}
    hints = found(make_definition(name="get_it", description="x", parameters=schema))
    assert hints == [
        ("/parameters", None),
        ("/parameters", "OpenAI strict mode"),
        ("/parameters", "OpenAI strict mode"),
    ]


def test_combinators_at_the_top_name_the_providers_that_refuse_them():
    hints = found(tool(oneOf=[{"required": ["city"]}]))
    assert hints[:2] == [("/parameters/oneOf", "Anthropic"), ("/parameters/oneOf", "OpenAI")]


def test_keywords_formats_and_recursion_name_the_provider():
    assert found(tool(patternProperties={"^x": CITY})) == [
        ("/parameters/patternProperties", "OpenAI strict mode"),
        ("/parameters/patternProperties", "Gemini"),
    ]
    assert found(tool(properties={"city": {**CITY, "format": "iri"}})) == [
        ("/parameters/properties/city/format", "OpenAI strict mode")
    ]
    assert found(tool(properties={"city": {**CITY, "format": "date"}})) == []
    assert found(tool(properties={"city": {"$ref": "#"}})) == [("/parameters", "Gemini")]
