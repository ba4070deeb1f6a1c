"""The 20 medium tool definitions of the `definitions` case: 20 properties over 3 levels, 1.6 KB of schema each."""

import json
from typing import Any

COUNT = 20
MARK = " of this shop"


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def schema(mark: str) -> dict[str, Any]:
    """An order with a customer, who has an address, and with items."""
    address = {
        "type": "object",
        "properties": {
            "street": text("Street and number", maxLength=200),
            "city": text("City", maxLength=100),
            "postcode": text("Postal code", pattern="^[0-9A-Z -]{3,10}$"),
            "country": text("Country code", minLength=2, maxLength=2),
        },
        "required": ["street", "city", "country"],
        "additionalProperties": False,
    }
    customer = {
        "type": "object",
        "properties": {
            "name": text("Full name", minLength=1, maxLength=200),
            "email": text("Where to write to", maxLength=320),
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "address": address,
        },
        "required": ["name", "address"],
        "additionalProperties": False,
    }
    item = {
        "type": "object",
        "properties": {
            "sku": text("Article number", pattern="^[A-Z0-9-]{4,20}$"),
            "quantity": {"type": "integer", "minimum": 1},
            "price": {"type": "number", "minimum": 0},
            "gift": {"type": "boolean"},
        },
        "required": ["sku", "quantity"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "id": text(f"Order number{mark}", minLength=1),
            "customer": customer,
            "items": {"type": "array", "items": item, "minItems": 1, "maxItems": 100},
            "currency": {"enum": ["EUR", "USD", "GBP", "CHF"]},
            "express": {"type": "boolean"},
            "note": text("Anything else", maxLength=1000),
            "tags": {"type": "array", "items": {"type": "string"}},
            "discount": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["id", "customer", "items"],
        "additionalProperties": False,
    }


def body() -> bytes:
    """The list as a client sends it; no two of its definitions have a schema in common."""
    definitions = [
        {"name": f"place_order_{number}", "description": "Place an order.", "parameters": schema(f" {number}{MARK}")}
        for number in range(COUNT)
    ]
    return json.dumps(definitions).encode()


def another(body: bytes, number: int) -> bytes:
    """The same list with other schemas, cheap enough to be made inside a timed body."""
    return body.replace(MARK.encode(), b"-%d" % number)
