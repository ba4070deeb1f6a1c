"""The text of a reply that is under way is kept for whoever comes late, and stored in pieces when it takes long."""

from farhand.core.pieces import Finish, Usage
from farhand.core.updates import ReplyEnded, TextStreamed, TurnStarted
from farhand.durable.reply import YOUNG, Reply
from farhand.stores.base import PieceRow


def streamed(*texts: str, turn: int = 1, at: int = 1000) -> Reply:
    reply = Reply()
    offset = 0
    for text in texts:
        reply.hear(TextStreamed(4, at, turn, offset, text))
        offset += len(text)
    return reply


def piece(offset: int, text: str) -> PieceRow:
    return PieceRow(run="r", epoch=2, turn=1, offset=offset, text=text)


def test_there_is_no_text_before_anything_was_said() -> None:
    assert Reply().whole() is None
    assert Reply().piece("r", 2, 10**9) is None


def test_who_comes_late_gets_the_whole_text_as_one_update() -> None:
    assert streamed("one ", "two").whole() == TextStreamed(4, 1000, 1, 0, "one two")


def test_a_reply_that_is_whole_or_begun_again_has_no_text_under_way() -> None:
    for end in (ReplyEnded(5, 1001, 1, "one", 0, Finish.STOP, Usage()), TurnStarted(5, 1001, 1)):
        reply = streamed("one")
        reply.hear(end)
        assert reply.whole() is None
        assert reply.piece("r", 2, 10**9) is None


def test_text_that_begins_anew_takes_the_place_of_the_old() -> None:
    reply = streamed("one", "two")
    reply.hear(TextStreamed(6, 2000, 2, 0, "new"))
    assert reply.whole() == TextStreamed(6, 2000, 2, 0, "new")


def test_nothing_of_a_young_reply_is_stored() -> None:
    reply = streamed("one")
    assert reply.piece("r", 2, 1000 + YOUNG - 1) is None
    assert reply.piece("r", 2, 1000 + YOUNG) == piece(0, "one")


def test_each_piece_is_stored_once_and_they_follow_each_other() -> None:
    reply = streamed("one ", "two ")
    assert reply.piece("r", 2, 5000) == piece(0, "one two ")
    assert reply.piece("r", 2, 5000) is None
    reply.hear(TextStreamed(4, 5000, 1, 8, "three"))
    assert reply.piece("r", 2, 5000) == piece(8, "three")
    assert reply.whole() == TextStreamed(4, 1000, 1, 0, "one two three")
