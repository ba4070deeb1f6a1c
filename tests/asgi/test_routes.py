"""A path and a method mean one endpoint, or none; ids in a path may hold whatever can be escaped."""

import re

import pytest

from farhand.asgi.routes import Routes
from farhand.core.errors import InvalidInput, NotFound, WrongMethod
from farhand.protocols.endpoints import ENDPOINTS, Endpoint
from farhand.protocols.native import MAX_ID

ROUTES = Routes(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_endpoint_is_found_by_its_path(endpoint: Endpoint) -> None:
    found, ids = ROUTES.find(endpoint.method, endpoint.path.replace("{", "a%2F%C3%A4").replace("}", ""))
    assert found is endpoint
    assert ids == {name: f"a/ä{name}" for name in re.findall(r"\{(\w+)\}", endpoint.path)}


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/threads", "/threads/a/b/c", "/threads/a/runs/b"])
def test_what_is_not_there_is_not_found(path: str) -> None:
    with pytest.raises(NotFound):
        ROUTES.find("GET", path)


def test_a_wrong_method_says_which_are_taken() -> None:
    with pytest.raises(WrongMethod) as refused:
        ROUTES.find("GET", "/threads/a/runs")
    assert refused.value.allowed == ("POST",)


@pytest.mark.parametrize("name", ["%00", "%0a", "%7f", "%C2%85", "%ff", "a" * (MAX_ID + 1)])
def test_an_id_that_nobody_should_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        ROUTES.find("GET", f"/threads/{name}")


def test_an_empty_id_is_no_id() -> None:
    with pytest.raises((NotFound, InvalidInput)):
        ROUTES.find("GET", "/threads//updates")
