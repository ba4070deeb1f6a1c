"""The tools of the `tokens` case: up to a hundred in each of ten groups, with a sentence or two and 3 to 5 parameters.

Nothing is drawn: the same number of tools is the same tools, in every pass and on every machine.
"""

from itertools import islice
from typing import Any

from farhand.core.definition import Definition, make_definition
from farhand.core.group import ToolGroup

# What a group is for, and what it has.
AREAS = {
    "Mail": (
        "Read, write and sort the e-mail of the user.",
        "message draft folder filter label contact signature template thread attachment",
    ),
    "Calendar": (
        "Look up and plan meetings, rooms and reminders.",
        "event invitation room reminder calendar holiday slot series agenda attendee",
    ),
    "Files": (
        "Work with files and folders of the workspace.",
        "file folder archive link version comment preview template tag backup",
    ),
    "Code": (
        "Work with repositories, reviews and builds.",
        "repository branch commit review issue release workflow secret runner milestone",
    ),
    "Data": (
        "Query and maintain the databases of the company.",
        "table view query index schema migration backup user connection report",
    ),
    "Shop": (
        "Browse products, fill the cart and follow orders.",
        "product category cart order voucher return review shipment address wishlist",
    ),
    "Finance": (
        "Invoices, payments and the books of a month.",
        "invoice payment account transfer expense receipt budget tax customer supplier",
    ),
    "People": (
        "Staff, leave, hiring and pay.",
        "employee team vacation candidate interview payslip contract training goal badge",
    ),
    "Cloud": (
        "Servers, deployments and monitoring.",
        "server deployment container alert incident dashboard bucket certificate domain volume",
    ),
    "Support": (
        "Tickets of customers and what they are told.",
        "ticket customer answer macro queue agent article survey escalation chat",
    ),
}
PAGE = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many to return at most"},
    "cursor": {"type": "string", "description": "Where to go on, from the answer before"},
}
SINCE = {"type": "string", "format": "date", "description": "Only what was changed on or after this day"}


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


# What a tool does, its parameters, and how many of them must be given.
ACTIONS: dict[str, tuple[str, dict[str, Any], int]] = {
    "search": (
        "Finds a {0} by words in its name or text. The best matches come first.",
        {"query": text("Words to look for"), "owner": text("Only what belongs to this person"), "since": SINCE, **PAGE},
        1,
    ),
    "list": (
        "Lists what there is of the kind {0}, the newest first.",
        {"state": text("Only in this state", enum=["open", "closed", "archived", "all"]), **PAGE},
        0,
    ),
    "get": (
        "Gets one {0} with all its details. Use search first if the id is not known.",
        {
            "{0}_id": text("The id of the {0}"),
            "fields": {"type": "array", "items": {"type": "string"}, "description": "Only these fields"},
            "with_history": flag("Also who changed what and when"),
        },
        1,
    ),
    "create": (
        "Makes a new {0} and returns its id. Ask the user before making one that others can see.",
        {
            "title": text("Its name, in one line", maxLength=200),
            "body": text("Its text; Markdown may be used"),
            "labels": {"type": "array", "items": {"type": "string"}, "description": "Labels to find it by"},
            "visibility": text("Who can see it", enum=["private", "team", "everybody"]),
        },
        1,
    ),
    "update": (
        "Changes a {0}. What is not given stays as it is.",
        {
            "{0}_id": text("The id of the {0}"),
            "title": text("Its new name", maxLength=200),
            "body": text("Its new text"),
            "expected_version": {"type": "integer", "description": "Fail if somebody else has changed it since"},
        },
        1,
    ),
    "delete": (
        "Deletes a {0} for good. This cannot be undone, so ask the user first.",
        {
            "{0}_id": text("The id of the {0}"),
            "reason": text("Why, for the log"),
            "notify": flag("Tell everybody who follows it"),
        },
        1,
    ),
    "archive": (
        "Puts a {0} out of sight without deleting it.",
        {
            "{0}_id": text("The id of the {0}"),
            "until": text("When it comes back by itself", format="date"),
            "reason": text("Why, for the log"),
        },
        1,
    ),
    "share": (
        "Gives somebody access to a {0}. They get a message with a link.",
        {
            "{0}_id": text("The id of the {0}"),
            "with": text("E-mail address of the person or name of the team"),
            "permission": text("What they may do", enum=["view", "comment", "edit"]),
            "expires": text("Last day of the access", format="date"),
        },
        2,
    ),
    "export": (
        "Writes a {0} to a file. Large ones take up to a minute.",
        {
            "{0}_id": text("The id of the {0}"),
            "format": text("The kind of file", enum=["pdf", "csv", "json", "html"]),
            "path": text("Where to write it"),
            "overwrite": flag("Replace a file that is there"),
        },
        3,
    ),
    "assign": (
        "Makes somebody responsible for a {0}, or nobody.",
        {
            "{0}_id": text("The id of the {0}"),
            "person": text("Who takes care of it; nobody if left out"),
            "due": text("Until when", format="date"),
            "note": text("What they should know"),
            "notify": flag("Send them a message"),
        },
        1,
    ),
}


def groups(tools: int) -> list[ToolGroup]:
    """Ten groups with as many tools in all."""
    each = tools // len(AREAS)
    return [
        ToolGroup(name=name, description=description, tools=tuple(islice(definitions(name, things.split()), each)))
        for name, (description, things) in AREAS.items()
    ]


def definitions(area: str, things: list[str]) -> list[Definition]:
    """Every action on every thing of an area."""
    return [definition(area, action, thing) for thing in things for action in ACTIONS]


def definition(area: str, action: str, thing: str) -> Definition:
    said, parameters, required = ACTIONS[action]
    properties = {
        name.format(thing): {**about, "description": about["description"].format(thing)}
        for name, about in parameters.items()
    }
    return make_definition(
        name=f"{area.lower()}_{action}_{thing}",
        description=said.format(thing),
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties)[:required],
            "additionalProperties": False,
        },
    )
