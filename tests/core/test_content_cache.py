"""The cache is bounded by bytes and drops what was used longest ago."""

import sys
from concurrent.futures import ThreadPoolExecutor

from farhand.core.content_cache import ContentCache


def test_the_least_recently_used_goes_first():
    cache = ContentCache(100)
    cache.put("a", 1, 40)
    cache.put("b", 2, 40)
    assert cache.get("a") == 1
    cache.put("c", 3, 40)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert (cache.bytes, len(cache)) == (80, 2)


def test_a_value_put_again_counts_once():
    cache = ContentCache(100)
    cache.put("a", 1, 40)
    cache.put("a", 2, 60)
    assert (cache.get("a"), cache.bytes) == (2, 60)


def test_what_is_larger_than_the_cache_is_not_kept_and_drives_nothing_out():
    cache = ContentCache(100)
    cache.put("a", 1, 101)
    assert (cache.get("a"), cache.bytes, len(cache)) == (None, 0, 0)
    cache.put("b", 2, 60)
    cache.put("a", 1, 101)
    assert (cache.get("a"), cache.get("b"), cache.bytes) == (None, 2, 60)
    cache.put("b", 3, 101)
    assert (cache.get("b"), cache.bytes) == (None, 0)


def test_a_cleared_cache_is_empty():
    cache = ContentCache(100)
    cache.put("a", 1, 10)
    cache.clear()
    assert (cache.get("a"), cache.bytes, len(cache)) == (None, 0, 0)


def test_threads_may_share_a_cache():
    cache = ContentCache(40)

    def work(offset):
        for at in range(3000):
            cache.get((at + offset) % 7)
            cache.put((at * offset) % 7, at, 10)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(1, 5)))
    finally:
        sys.setswitchinterval(interval)
    assert cache.bytes <= 40
