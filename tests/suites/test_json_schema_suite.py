"""The official JSON-Schema-Test-Suite, required tests of 2020-12 and draft 7, through the path that owners' tools take.

What the owner's path refuses by decision is listed here with its reason, and its refusal is asserted; the same tests
then go through the same validator with what we withhold (remote documents, unasserted formats), so that n of n are run.
"""

import json
import runpy
from pathlib import Path

import jsonschema_rs
import pytest

from farhand.core.admission import DRAFT_7, DRAFT_2020_12, OWNER
from farhand.core.schema import BadSchema, compile_schema

# Refused because the schema cannot be judged or compiled without another document: `$ref`, and `$schema` of a dialect
# of the suite's own. See performance.md §2.4, rule 1.
OUT_OF_THE_DOCUMENT = {"$ref", "$dynamicRef", "$schema"}
# Refused by the guard although this one schema is harmless: which anchor a `$dynamicRef` means is known only when it
# runs, so the guard counts all of that name, and finds two ways from one value into one recursion.
TOO_CAREFUL = {
    (
        "dynamicRef.json",
        "A $dynamicRef that initially resolves to a schema with a matching $dynamicAnchor resolves to the first "
        "$dynamicAnchor in the dynamic scope",
    ),
}
# Farhand asserts the formats it knows in both drafts (L32). In 2020-12 the suite wants them unasserted by default.
ONLY_AN_ANNOTATION = "is only an annotation by default"

LINEAR = jsonschema_rs.RegexOptions(size_limit=1 << 20)


@pytest.fixture(scope="module")
def suite():
    return runpy.run_path(str(Path(__file__).with_name("fetch.py")))["json_schema_suite"]()


def remotes(suite, draft):
    """The suite's `remotes`, at the address that its tests expect, without a server."""
    root = suite / "remotes"
    others = {"draft2019-09", "draft2020-12", "draft3", "draft4", "draft6", "draft7", "v1"} - {draft}
    files = [path for path in root.rglob("*.json") if path.relative_to(root).parts[0] not in others]
    return {
        f"http://localhost:1234/{path.relative_to(root).as_posix()}": json.loads(path.read_text()) for path in files
    }


def engine(schema, draft, known, *, formats):
    """The validator as Farhand uses it, but with the remote documents; a KeyError for any other."""
    validator = jsonschema_rs.Draft7Validator if draft == "draft7" else jsonschema_rs.validator_for
    return validator(schema, retriever=known.__getitem__, validate_formats=formats, pattern_options=LINEAR)


def with_dialect(schema, draft):
    if draft == "draft7" and isinstance(schema, dict):
        return {"$schema": DRAFT_7, **schema}
    return schema


def names_another(schema):
    """Whether a schema really names a document that is not in it: by a reference, or as its dialect."""
    dialect = schema.get("$schema") in (DRAFT_7, DRAFT_2020_12)
    words = json.dumps({key: value for key, value in schema.items() if not (dialect and key == "$schema")})
    return any(address in words for address in ("http://localhost:1234/", DRAFT_7, DRAFT_2020_12))


def check_refused(group, file, draft, known, rules):
    """A group whose schema was refused: by decision, and the engine itself gives the right answers."""
    assert rules <= OUT_OF_THE_DOCUMENT or (file, group["description"]) in TOO_CAREFUL, (
        file,
        group["description"],
        rules,
    )
    assert (file, group["description"]) in TOO_CAREFUL or names_another(group["schema"])
    validator = engine(group["schema"], draft, known, formats=draft == "draft7")
    for test in group["tests"]:
        assert validator.is_valid(test["data"]) is test["valid"], (file, group["description"], test)
    return ["refused by decision"] * len(group["tests"])


def run_group(group, file, draft, known):
    """Run one group of tests; returns how its tests were passed, one word a test."""
    formats_matter = draft == "draft7"
    raw = json.dumps(with_dialect(group["schema"], draft)).encode()
    try:
        schema = compile_schema(raw, OWNER)
    except BadSchema as refusal:
        return check_refused(group, file, draft, known, {problem.rule for problem in refusal.problems})
    passed = []
    for test in group["tests"]:
        if not formats_matter and test["description"].endswith(ONLY_AN_ANNOTATION):
            assert engine(group["schema"], draft, known, formats=False).is_valid(test["data"]) is test["valid"]
            passed.append("format asserted by decision")
            continue
        assert schema.is_valid(test["data"]) is test["valid"], (file, group["description"], test)
        assert bool(schema.problems(test["data"])) is not test["valid"], (file, group["description"], test)
        passed.append("owner")
    return passed


@pytest.mark.parametrize(("draft", "least"), [("draft2020-12", 1250), ("draft7", 900)])
def test_every_required_test_of_the_official_suite_passes(suite, draft, least, record_property, capsys):
    known = remotes(suite, draft)
    wanted, passed = 0, []
    for file in sorted((suite / "tests" / draft).glob("*.json")):
        for group in json.loads(file.read_text()):
            wanted += len(group["tests"])
            passed += run_group(group, file.name, draft, known)
    counts = {how: passed.count(how) for how in sorted(set(passed))}
    assert len(passed) == wanted >= least
    record_property("json-schema suite", f"{draft}: {len(passed)} of {wanted}")
    with capsys.disabled():
        print(f"\njson-schema suite: {len(passed)} of {wanted} ({draft}; {counts})")  # noqa: T201


def test_only_the_listed_groups_are_refused_for_their_cost(suite):
    refused = set()
    for draft, dialect in (("draft2020-12", DRAFT_2020_12), ("draft7", DRAFT_7)):
        for file in sorted((suite / "tests" / draft).glob("*.json")):
            for group in json.loads(file.read_text()):
                schema = group["schema"]
                raw = json.dumps({"$schema": dialect, **schema} if isinstance(schema, dict) else schema).encode()
                try:
                    compile_schema(raw, OWNER)
                except BadSchema as refusal:
                    if not {problem.rule for problem in refusal.problems} <= OUT_OF_THE_DOCUMENT:
                        refused.add((file.name, group["description"]))
    assert refused == TOO_CAREFUL
