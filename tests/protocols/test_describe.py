"""The description in OpenAPI is made of the code, and what is sent fits the schema of its frame."""

import re

import jsonschema_rs
import pytest
from msgspec import Raw, json

from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.pieces import Usage
from farhand.core.run import Ending
from farhand.core.updates import CallEnded, CallStreamed, RunEnded, TextStreamed
from farhand.protocols import native
from farhand.protocols.describe import errors_of, openapi, schemas
from farhand.protocols.endpoints import ENDPOINTS, Endpoint

DOCUMENT = json.decode(openapi("1"))


def valid(name: str, value: object) -> bool:
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas()}}
    return jsonschema_rs.validator_for(schema).is_valid(json.decode(json.encode(value)))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_endpoint_is_described(endpoint: Endpoint) -> None:
    operation = DOCUMENT["paths"][native.PREFIX + endpoint.path][endpoint.method.lower()]
    assert operation["operationId"] == endpoint.name
    assert operation["x-scope"] == endpoint.scope
    named = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}
    assert named == set(re.findall(r"\{(\w+)\}", endpoint.path))
    assert str(endpoint.status) in operation["responses"] or "200" in operation["responses"]
    assert {str(status) for status in errors_of(endpoint)} <= operation["responses"].keys()


def test_every_reference_leads_somewhere() -> None:
    references = set(re.findall(r'"\$ref":"#/components/schemas/(\w+)"', openapi("1").decode()))
    assert references - schemas().keys() == set()


def test_every_schema_is_one_and_says_what_it_is_for() -> None:
    for name, schema in schemas().items():
        jsonschema_rs.meta.validate(schema)
        assert schema.get("description") or "oneOf" in schema, name


@pytest.mark.parametrize(
    "update",
    [
        TextStreamed(3, 1, 1, 0, "hi"),
        CallStreamed(3, 1, "c", 0, "{"),
        CallEnded(4, 1, "c", "t", CallState.OUTPUT_AVAILABLE, Outcome.OK, Raw(b"false"), None, 5),
        RunEnded(5, 1, Ending.DONE, "bye", "", None, Usage(), 1, {}),
    ],
    ids=lambda update: type(update).__name__,
)
def test_an_update_fits_its_schema(update: object) -> None:
    assert valid("Update", update)
    assert not valid("Update", {**json.decode(json.encode(update)), "type": "nothing"})


def test_a_frame_that_lacks_something_does_not_fit() -> None:
    assert valid("RunRequest", {"input": "hi", "from": "the future"})
    assert not valid("RunRequest", {"agent": "x"})
    assert valid("ToolView", native.ToolView(name="a", description="b", parameters=Raw(b"{}"), place=Place.SERVER))
