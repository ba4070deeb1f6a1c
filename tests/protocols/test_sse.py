"""Event streams: what is written is read back, in pieces of any size, and as the standard says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.protocols import sse
from farhand.protocols.sse import EventTooLarge, Reader, ServerEvent, frame


def read(*chunks: bytes) -> list[ServerEvent]:
    reader = Reader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def test_a_frame_is_read_back_with_its_id() -> None:
    assert read(frame(b'{"a":1}', "12")) == [ServerEvent('{"a":1}', "12")]


def test_an_event_without_an_id_leaves_the_last_one_in_force() -> None:
    assert [event.id for event in read(frame(b"1", "7") + frame(b"2"))] == ["7", "7"]


def test_a_heartbeat_is_no_event() -> None:
    assert read(sse.HEARTBEAT * 3 + frame(b"1")) == [ServerEvent("1")]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])), min_size=1), st.data())
def test_a_stream_may_be_cut_anywhere(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(frame(text.encode(), str(at)) for at, text in enumerate(texts, 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [event.data for event in read(*pieces)] == texts


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_three_ways(end: bytes) -> None:
    lines = [b"event: news", b"data: one", b"data:two", b"id: 3", b"retry: 250", b"unknown: x", b": note", b"", b""]
    reader = Reader()
    events = [event for byte in end.join(lines) for event in reader.feed(bytes([byte]))]
    assert events == [ServerEvent("one\ntwo", "3", "news")]
    assert reader.retry == 250


def test_a_byte_order_mark_before_the_stream_is_passed_over() -> None:
    assert read(b"\xef\xbb\xbfdata: 1\n\n") == [ServerEvent("1")]


def test_an_event_without_data_is_none() -> None:
    assert read(b"event: x\nid: 4\n\ndata: 1\n\n") == [ServerEvent("1", "4")]


def test_an_id_with_a_null_in_it_is_passed_over() -> None:
    assert read(b"id: a\0b\ndata: 1\n\n") == [ServerEvent("1")]


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 65_536, b"x" * 65_536, b"data: " + b"x" * 65_530 + b"\n"])
def test_an_event_that_never_ends_is_not_kept(chunk: bytes) -> None:
    with pytest.raises(EventTooLarge):
        read(*[chunk] * (sse.MAX_EVENT // 65_000))
