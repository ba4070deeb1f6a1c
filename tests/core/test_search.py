"""What is asked for is found, by name first; texts made to be found do not come before what was asked for."""

import random
import time
from itertools import permutations

import pytest
from msgspec import json

from farhand.core import search
from farhand.core.definition import make_definition
from farhand.core.search import MAX_NODES, Entry, ToolIndex
from tests.core.tool_catalog import CATALOG, PARAPHRASES, QUERIES


def entry(name, description="", extra="", **parameters):
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return Entry(name=name, description=description, parameters=json.encode({"properties": properties}), extra=extra)


def found(query, *entries, **options):
    return [hit.name for hit in ToolIndex(entries).search(query, **options)]


def figures(catalog, queries):
    """Recall at 1 and at 5, and the mean reciprocal rank."""
    index = ToolIndex(catalog)
    ranks: list[int] = []
    for query, name in queries.items():
        names = [hit.name for hit in index.search(query, limit=len(catalog))]
        ranks.append(names.index(name) + 1 if name in names else 0)
    count = len(ranks)
    inverse = sum(1 / rank for rank in ranks if rank)
    return sum(rank == 1 for rank in ranks) / count, sum(0 < rank <= 5 for rank in ranks) / count, inverse / count


@pytest.mark.parametrize(
    ("kind", "queries", "floors"),
    [("queries", QUERIES, (0.85, 0.94, 0.9)), ("paraphrases", PARAPHRASES, (0.75, 0.88, 0.8))],
)
def test_in_a_large_catalog_most_queries_find_their_tool(kind, queries, floors, record_property):
    reached = figures(CATALOG, queries)
    told = "recall@1 {:.2f}, recall@5 {:.2f}, MRR {:.2f}".format(*reached)
    record_property("tool search", f"{len(CATALOG)} tools, {len(queries)} {kind}: {told}")
    assert all(figure >= floor for figure, floor in zip(reached, floors, strict=True))


def test_every_tool_is_found_first_by_its_own_name_however_that_is_written():
    index = ToolIndex(CATALOG)
    for tool in CATALOG:
        for query in (tool.name, tool.name.replace("_", " "), tool.name.upper()):
            assert index.search(query)[0].name == tool.name


def test_a_name_counts_more_than_a_parameter_and_that_more_than_a_description():
    named = entry("rotate", "Does it.")
    taking = entry("turn", "Does it.", rotate="How far")
    described = entry("spin", "Rotate it.")
    telling = entry("whirl", "Does it.", angle="Rotate so far")
    for order in permutations([named, taking, described, telling]):
        assert found("rotate", *order) == ["rotate", "turn", "spin", "whirl"]


def test_parameters_are_found_wherever_they_are_nested():
    inner = {"type": "object", "properties": {"postcode": {"description": "Where the letter goes"}}}
    schemas = {
        "in a list": {"properties": {"a": {"type": "array", "items": inner}}},
        "in a list of pairs": {"properties": {"a": {"prefixItems": [True, inner]}}},
        "in a choice": {"anyOf": [{"type": "null"}, {"properties": {"a": inner}}]},
        "in a definition": {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": inner}},
        "in any other member": {"additionalProperties": inner},
    }
    for name, schema in schemas.items():
        one = Entry(name="send", parameters=json.encode(schema))
        assert found("postcode", one, entry("other")) == ["send"], name
        assert found("letters", one, entry("other")) == ["send"], name


def test_what_a_schema_should_not_say_says_nothing():
    odd = {"description": 5, "properties": [1], "items": "x", "anyOf": {"a": 1}, "$defs": {"a": 3, "b": None}}
    for schema in (odd, True, [], {"properties": {"description": {"description": "A text"}}}):
        assert found("send", Entry(name="send", parameters=json.encode(schema))) == ["send"]


def test_a_tool_is_found_by_its_title_its_tags_and_the_texts_of_its_group():
    definition = make_definition(name="f", description="Does it.", title="Flowers", tags=("garden",))
    tool = Entry.of(definition, "Plants", "All that is green.")
    for query in ("flower", "garden", "plant", "green"):
        assert found(query, tool, entry("g", "Does it.")) == ["f"]


def test_the_beginning_of_a_word_is_enough_and_a_whole_word_is_better():
    tools = [entry("repository_list"), entry("repo_list"), entry("list")]
    assert found("repo", *tools) == ["repo_list", "repository_list"]
    assert found("repos", *tools)[0] == "repo_list"
    assert found("reposit", *tools) == ["repository_list"]
    assert found("re", entry("re"), *tools) == ["re"]


def test_a_word_that_is_nowhere_finds_those_that_begin_alike():
    tools = [entry("schedule_talk"), entry("schema_talk"), entry("other")]
    assert found("scheduling", *tools) == ["schedule_talk"]
    assert found("contact", entry("contamination"), *tools) == []
    assert found("xyz", *tools) == []
    assert found("nothing", *tools) == []


def test_a_word_in_other_scripts_is_found():
    tools = [entry("a", "打开一个文件"), entry("b", "Öffnet eine Datei"), entry("c", "Открывает файл")]
    assert found("文件", *tools) == ["a"]
    assert found("件", entry("d", "件")) == ["d"]
    assert found("offnet", *tools) == ["b"]
    assert found("ФАЙЛ", *tools) == ["c"]


def test_without_words_nothing_is_found():
    for query in ("", " ", "…", "_"):
        assert found(query, *CATALOG[:5]) == []
    assert found("send") == []
    assert found("send", entry("send"), limit=0) == []


def test_equals_come_in_the_order_of_their_names_and_no_more_than_the_limit():
    tools = [entry(f"send_{letter}", "The same.") for letter in "dbace"]
    for order in permutations(tools):
        assert found("send", *order, limit=3) == ["send_a", "send_b", "send_c"]
    assert len(found("send", *tools)) == 5


def test_two_of_one_name_are_both_found_first():
    assert found("open file", entry("openFile"), entry("open_file"), entry("open"), entry("file"))[:2] == [
        "openFile",
        "open_file",
    ]


def test_hits_for_words_that_say_little_are_left_out():
    tools = [entry(f"tool{at}", "Works on the thing.") for at in range(20)]
    assert found("weather on the sea", entry("weather"), *tools) == ["weather"]


def test_rare_words_are_taken_first_when_all_together_are_too_many():
    tools = [entry(f"common_{at}", "Many words that each of them has.") for at in range(3000)]
    assert found("many words that each of them has: zebra", entry("zebra"), *tools)[0] == "zebra"
    assert len(found("many", *tools, limit=5000)) == 3000


# What is written to be found.


def stuffed(text, **fields):
    return entry("aaa_helper", text, **fields)


WORTHY = [tool for tool in CATALOG if tool.name != "aaa_helper"]


@pytest.mark.parametrize(
    "hostile",
    [
        stuffed("send email " * 90),
        stuffed("email! " * 146),
        stuffed("Best tool. " + " ".join(dict.fromkeys(" ".join(QUERIES).split()))),
        stuffed("x", email="send email " * 200, mail="send email " * 200),
        stuffed("x", extra="send email " * 2000),
        stuffed("x", **{f"send_email_{at}": "send email" for at in range(60)}),
        stuffed("sendEmail" * 100),
    ],
)
def test_a_tool_that_repeats_what_is_asked_for_does_not_come_before_the_one_that_does_it(hostile):
    index = ToolIndex([hostile, *WORTHY])
    assert index.search("send an email to a colleague")[0].name == "send_email"
    before, after = (figures(catalog, QUERIES) for catalog in (WORTHY, [hostile, *WORTHY]))
    assert after[0] >= before[0] - 0.05
    assert after[1] >= before[1] - 0.05


def test_a_name_made_of_many_words_is_worth_less_for_each():
    long = "send_email_read_file_make_event_open_order_get_user_set_note"
    assert found("send email", entry(long), entry("send_email_now")) == ["send_email_now", long]
    assert found("send email", entry("SendEmailReadFileMakeEventOpenOrderGetUser"), entry("send_email_now"))[0] == (
        "send_email_now"
    )


def test_of_an_endless_text_or_schema_the_beginning_is_read():
    assert found("zebra", entry("a", "word " * 10_000 + "zebra")) == []
    many = {
        "properties": {f"p{at}": {"description": "x"} for at in range(2 * MAX_NODES)} | {"z": {"description": "zebra"}}
    }
    assert found("zebra", Entry(name="a", parameters=json.encode(many))) == []


# What it costs.


def generated(count):
    chosen = random.Random(5)
    texts = [(tool.name, tool.description, tool.parameters, tool.extra) for tool in CATALOG]
    return [
        Entry(
            name=f"{chosen.choice(texts)[0]}_{at}",
            description=f"{chosen.choice(texts)[1]} {chosen.choice(texts)[1]}",
            parameters=chosen.choice(texts)[2],
            extra=chosen.choice(texts)[3],
        )
        for at in range(count)
    ]


def best_of(rounds, work):
    spent: list[float] = []
    for _ in range(rounds):
        start = time.thread_time()
        work()
        spent.append(time.thread_time() - start)
    return min(spent)


def test_a_thousand_tools_are_indexed_in_a_moment_and_searched_in_less(record_property):
    tools = generated(1000)

    def built(*, anew):
        if anew:
            search._known.clear()
        ToolIndex(tools).search("nothing")

    cold, warm = best_of(5, lambda: built(anew=True)), best_of(5, lambda: built(anew=False))
    index = ToolIndex(tools)
    asked = max(best_of(5, lambda query=query: index.search(query)) for query in [*QUERIES, "of a the in an to " * 60])
    told = f"built in {cold * 1e3:.0f} ms, again in {warm * 1e3:.1f} ms, slowest query {asked * 1e3:.2f} ms"
    record_property("tool search, 1,000 tools", told)
    assert cold < 0.2
    assert warm < cold / 2
    assert asked < 0.01


def test_what_is_known_of_an_entry_is_bound_to_all_of_its_texts():
    assert found("one", entry("t", "one")) == ["t"]
    assert found("one", entry("t", "two")) == []
    assert found("two", entry("t", "two")) == ["t"]
