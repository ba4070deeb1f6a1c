"""Names fall into their parts, texts into words, and words into the form in which they are compared."""

import time

import pytest

from farhand.core import words
from farhand.core.words import MAX_WORD, forms, letters_of, split


def words_of(text):
    return list(forms(split(text)))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("send_mail", ["send", "mail"]),
        ("send-mail.now/then", ["send", "mail", "now", "then"]),
        ("openFile", ["open", "file", "openfile"]),
        ("HTTPServer2", ["http", "server", "2", "httpserver2"]),
        ("s3", ["s", "3", "s3"]),
        ("", []),
        ("-_.", []),
    ],
)
def test_a_name_is_split_at_its_joints_its_capitals_and_its_digits_and_is_a_word_as_a_whole(name, parts):
    assert [word.removesuffix("e") for word in words_of(name)] == [word.removesuffix("e") for word in parts]


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("file", "files"),
        ("category", "categories"),
        ("movie", "movies"),
        ("process", "processes"),
        ("cache", "caches"),
        ("search", "searches"),
        ("day", "days"),
        ("key", "keys"),
        ("address", "addresses"),
        ("status", "statuses"),
        ("note", "notes"),
    ],
)
def test_singular_and_plural_have_one_form(one, many):
    assert words_of(one) == words_of(many)


def test_words_that_only_look_like_a_plural_stay_apart_from_others():
    assert words_of("as") != words_of("a")
    assert words_of("note") != words_of("not")
    assert words_of("gas") == ["gas"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Grüße", "GRUSSE"),
        ("café", "cafe\u0301"),
        ("\uff26\uff49\uff4c\uff45", "file"),
        ("ﬁle", "file"),
        ("ДАТА", "дата"),
        ("Ελλάδα", "ελλαδα"),
    ],
)
def test_capitals_accents_and_ways_to_write_a_letter_do_not_matter(one, other):
    assert words_of(one) == words_of(other)


def test_where_no_space_divides_words_two_neighbours_are_one():
    assert words_of("打开文件") == ["打开", "开文", "文件"]
    assert words_of("文") == ["文"]
    assert words_of("打开file") == ["打开", *words_of("file")]
    assert words_of("打开файл") == ["打开", *words_of("файл")]


def test_marks_do_not_break_a_word():
    assert words_of("हिन्दी में") == ["हिन्दी", "में"]


def test_a_name_is_the_same_however_its_parts_are_written():
    assert letters_of("open_file") == letters_of("openFile") == letters_of("Open file") == "openfile"


def test_of_a_long_word_the_beginning_counts():
    assert words_of("x" * 100_000) == ["x" * MAX_WORD]


def test_a_character_that_stands_for_many_does_not_make_a_text_long():
    assert len("".join(words_of("\ufdfa" * 1000))) <= 2000


def test_what_is_known_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(words, "_MAX_KNOWN", 50)
    assert [len(words_of(f"{at}x")) for at in range(200)] == [3] * 200
    assert len(words._known) <= 50


@pytest.mark.parametrize(
    "text", ["aA" * 50_000, "A" * 100_000, "a1" * 50_000, "é" * 100_000, "文" * 100_000, "_" * 100_000]
)
def test_the_worst_texts_are_split_in_time(text, record_property):
    start = time.thread_time()
    words_of(text)
    spent = time.thread_time() - start
    record_property("worst text", f"{text[:2]}: {spent * 1e3:.1f} ms")
    assert spent < 1
