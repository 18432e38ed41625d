"""The cache is a bounded memory of what was used last."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.queue.translation_cache import TranslationCache

CAPACITY = 100
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("put"), st.sampled_from("abcdefgh"), st.integers(0, 12)),
    ),
    max_size=80,
)


@given(STEPS)
def test_does_as_a_plain_list_of_what_was_used_last(steps):
    cache: TranslationCache[int] = TranslationCache(CAPACITY)
    plain: list[tuple[str, int]] = []  # the one used last is at the end
    for number, (what, key, *size) in enumerate(steps):
        old = next((entry for entry in plain if entry[0] == key), None)
        if what == "get":
            assert (cache.get(key) is None) == (old is None)
            if old:
                plain.remove(old)
                plain.append(old)
            continue
        cache.put(key, number, size[0])
        if size[0] * 10 > CAPACITY:
            continue
        if old:
            plain.remove(old)
        plain.append((key, size[0]))
        while sum(each for _, each in plain) > CAPACITY:
            plain.pop(0)
        assert cache.get(key) == number
    assert len(cache) == len(plain)
    assert cache.size == sum(size for _, size in plain) <= CAPACITY


def test_with_no_capacity_nothing_is_remembered():
    cache: TranslationCache[str] = TranslationCache(0)
    cache.put("a", "b", 1)
    assert cache.get("a") is None
    assert len(cache) == 0
